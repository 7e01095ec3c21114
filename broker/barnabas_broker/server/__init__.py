"""A broker as a whole: the real part behind each seam, and the order of start and stop."""

from barnabas_broker.server.main import run

__all__ = ["run"]
