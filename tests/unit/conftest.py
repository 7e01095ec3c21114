"""What several unit tests share."""

import pytest
from barnabas.cluster import cluster


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients believe sooner that a topic does not exist: seconds pass otherwise, each time."""
    monkeypatch.setattr(cluster, "UNKNOWN_TOPIC_GRACE", 0.2)
