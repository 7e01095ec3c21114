"""Asks I25: whenever a compacted segment or a clean offset gets its name, and in every sample."""

import posixpath
from collections.abc import Mapping

from barnabas_broker.log.checkpoint.checkpoint_file import decode_offsets
from barnabas_broker.log.errors import MalformedCheckpoint
from barnabas_broker.log.manager.log_folders import parse_folder_name
from barnabas_broker.log.manager.offset_checkpoints import CLEAN_OFFSETS
from barnabas_broker.log.segment.segment_files import LOG_SUFFIX
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.compaction.rules import (
    newest_stays,
    no_early_horizon,
    no_gap_above,
    nothing_older,
)
from barnabas_simulator.invariants.findings import Findings
from barnabas_simulator.invariants.logs.image import Images
from barnabas_simulator.invariants.logs.keyed import CompactedTopic, KeyedRecords
from barnabas_simulator.invariants.truth import Truth
from barnabas_simulator.invariants.view import View, replica_of
from barnabas_simulator.loop import VirtualClock


class CompactionChecks:
    """Nothing is asked of a partition that is not compacted."""

    def __init__(
        self,
        view: View,
        findings: Findings,
        images: Images,
        truths: Mapping[TopicPartition, Truth],
        delete_retention_ms: Mapping[str, int],
    ) -> None:
        self._view = view
        self._hold = findings.hold
        self._images = images
        self._truths = truths
        self._delete_retention_ms = delete_retention_ms

    def keyed(self, topic: str) -> KeyedRecords | None:
        """What is to be known of a partition of the topic; None if it is not compacted."""
        if topic not in self._delete_retention_ms:
            return None
        view, clock = self._view, VirtualClock()
        return KeyedRecords(
            CompactedTopic(
                self._delete_retention_ms[topic],
                lambda: clock.wall_ms() + view.most_skew_ms,
                lambda: view.most_skew_ms,
            )
        )

    def renamed(self, broker_id: int, path: str) -> None:
        """A file on a broker's disk got its name."""
        directory, name = posixpath.split(path)
        if name == CLEAN_OFFSETS:
            self.look_at_all(broker_id)
        elif name.endswith(LOG_SUFFIX):
            partition = parse_folder_name(posixpath.basename(directory))
            truth = None if partition is None else self._truths.get(partition)
            if truth is not None:
                self.look_at(truth, broker_id)

    def look_at_all(self, broker_id: int) -> None:
        for truth in self._truths.values():
            self.look_at(truth, broker_id)

    def look_at(self, truth: Truth, broker_id: int) -> None:
        """Ask all rules of one broker's replica. Of a log that is not open yet, only the horizons:
        recovery may take its end."""
        if truth.keyed is None:
            return
        key = truth.partition
        replica, image = None, None
        for running in self._view.running():
            partition = running.partitions.get(key) if running.broker_id == broker_id else None
            if partition is not None and partition.log is not None and not partition.log.is_failed:
                replica = replica_of(running, partition)
                log = partition.log
                image = self._images.of(broker_id, log.directory, log.segments())
        if image is None:
            image = self._images.stored(key).get(broker_id)
        if image is None:
            return
        self._hold(key, no_early_horizon, image, truth.keyed)
        if replica is None or truth.forked or truth.unclean_epoch is not None:
            return
        bound = max(truth.high_watermark, truth.claimed)
        self._hold(key, newest_stays, replica, image, truth.keyed, bound)
        self._hold(key, no_gap_above, replica, image, bound)
        clean_offset = self._clean_offset(broker_id, posixpath.dirname(image.path), key)
        self._hold(key, nothing_older, replica, image, clean_offset)

    def _clean_offset(self, broker_id: int, directory: str, partition: TopicPartition) -> int:
        file = self._view.disks[broker_id].look_into(directory).get(CLEAN_OFFSETS)
        try:
            return 0 if file is None else decode_offsets(bytes(file.data)).get(partition, 0)
        except MalformedCheckpoint:  # written by a fault
            return 0
