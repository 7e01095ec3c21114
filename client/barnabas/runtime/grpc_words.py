"""What gRPC says of a broken connection, in words that a person understands.

Its own words change from release to release and name the address again; where none of the phrases
below is among them they are passed on as they are.
"""

# Looked for in this order; of several phrases in one text the most telling comes first.
_PLAIN = {
    "connection refused": "connection refused",
    "domain name not found": "the host name is not known",
    "address lookup failed": "the host name could not be resolved",
    "no route to host": "there is no route to the host",
    "host is unreachable": "there is no route to the host",
    "network is unreachable": "the network is unreachable",
    "connection timed out": "the connection timed out",
    "before receiving settings frame": "it takes connections, but does not answer",
    "keepalive timeout": "the other end was silent for too long",
    "ping timeout": "the other end was silent for too long",
    "failed parsing http/2": "what listens there does not speak gRPC",
    "connection reset": "the other end reset the connection",
    "broken pipe": "the other end closed the connection",
    "listener is closing": "the other end closed the connection",
    "socket closed": "the other end closed the connection",
    "stream removed": "the other end closed the connection",
    # for a write that found no stream
    "internal error from core": "the other end is gone",
}


def plain_words(code: str, details: str) -> str:
    """One line for gRPC's `details`, or these with the name of its status code."""
    found = details.lower()
    for phrase, plain in _PLAIN.items():
        if phrase in found:
            return plain
    return f"{details} ({code})" if details else code
