"""Producer, Consumer and Admin for scripts and notebooks: the same names, blocking.

They run one event loop in a background thread, so they also work where a loop already runs.
"""

from barnabas.sync.admin import Admin
from barnabas.sync.consumer import Consumer
from barnabas.sync.handle import SyncHandle
from barnabas.sync.producer import Producer
from barnabas.sync.transactional_loop import exactly_once

__all__ = ["Admin", "Consumer", "Producer", "SyncHandle", "exactly_once"]
