"""The error of local clusters; its message is one line for humans."""


class ClusterError(Exception):
    """The request failed: for example a port is taken, Java is missing, or a broker stopped."""
