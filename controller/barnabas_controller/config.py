"""The settings of the controller; the broker fills them from its own configuration."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ControllerConfig:
    """Names and defaults are Kafka's, except for three settings that Kafka does not have:
    `suspects_on_evidence` (`failure.detection`) and the two about eligible leader replicas.

    `request_timeout` (`controller.socket.timeout.ms`), `leader_imbalance_check_interval_seconds`
    and `eligible_leader_replicas_wait` are in seconds.
    """

    inter_broker_listener: str = "PLAINTEXT"
    delete_topic_enable: bool = True
    unclean_leader_election_enable: bool = False
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_per_broker_percentage: int = 10
    leader_imbalance_check_interval_seconds: float = 300.0
    request_timeout: float = 30.0
    suspects_on_evidence: bool = True
    min_insync_replicas: int = 1
    eligible_leader_replicas_enable: bool = True
    eligible_leader_replicas_wait: float = 30.0
