"""No producer is idempotent: the leader cannot recognize a retry."""

from dataclasses import replace

from barnabas.producer.config import ProducerConfig

assert ProducerConfig._with_idempotence_decided
ProducerConfig._with_idempotence_decided = (  # type: ignore[method-assign]
    lambda self, _: replace(self, enable_idempotence=False)
)
