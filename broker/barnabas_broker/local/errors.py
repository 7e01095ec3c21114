"""What can go wrong with a local cluster; the message is one line for a person."""


class ClusterError(Exception):
    """The cluster cannot do what was asked: a port is taken, Java is missing, a broker died."""
