"""The errors a caller can meet; `barnabas_common.errors` says what each kind means.

from barnabas.errors import KafkaError, NotLeaderOrFollowerError, TransportError
"""

from barnabas_common.errors import *  # noqa: F403
