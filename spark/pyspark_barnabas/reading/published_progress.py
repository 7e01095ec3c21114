"""How far a stream has come, as the committed offsets of a group: `barnabas group describe` shows
its lag.

A courtesy: the checkpoint says what is done, and nothing is ever read from the group. A commit that
fails is a warning, and the next one makes up for it.
"""

import logging
from collections.abc import Mapping

from barnabas import Admin
from barnabas_common.errors import BarnabasError
from barnabas_common.runtime import Runtime
from barnabas_common.topic_partition import TopicPartition

from pyspark_barnabas.options import ReadOptions

logger = logging.getLogger(__name__)

# A batch must not wait longer than this for a coordinator.
_TIMEOUT_MS = 3_000


class PublishedProgress:
    """Commits offsets for a group without members. Its client starts with the first commit."""

    def __init__(self, options: ReadOptions, runtime: Runtime | None = None) -> None:
        self._options = options
        self._runtime = runtime
        self._admin: Admin | None = None
        self._published: Mapping[TopicPartition, int] = {}

    async def publish(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit the offsets, unless they are what was committed last."""
        if not group_id or not offsets or offsets == self._published:
            return
        try:
            admin = await self._started()
            await admin.alter_group_offsets(group_id, offsets)
        except BarnabasError as error:
            logger.warning("group %s: progress is not published: %s", group_id, error)
        else:
            self._published = dict(offsets)

    async def close(self) -> None:
        if self._admin is not None:
            await self._admin.close()

    async def _started(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(
                self._options.bootstrap_servers,
                runtime=self._runtime,
                default_api_timeout_ms=_TIMEOUT_MS,
                request_timeout_ms=_TIMEOUT_MS,
            )
        return self._admin
