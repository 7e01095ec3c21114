"""A broker as a whole: which real part is behind each seam, and start and stop in order."""

from barnabas_broker.server.main import run

__all__ = ["run"]
