"""Whether packets pass between two containers, and how fast: how network faults are verified.

One program receives in the network of one container, another sends in that of the other.
"""

from barnabas_tools.chaos.faults.errors import FaultError
from barnabas_tools.chaos.faults.toolbox import Toolbox

_PORT = 45_678
_RECEIVE = f"""
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
    receiver.bind(("0.0.0.0", {_PORT}))
    print("ready", flush=True)
    input()
    receiver.settimeout(0.2)
    try:
        receiver.recv(16)
        print("received", flush=True)
    except TimeoutError:
        print("nothing", flush=True)
"""
_SEND = f"""
import socket, sys, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for _ in range(5):
        try:
            sender.sendto(b"x", (sys.argv[1], {_PORT}))
        except OSError:
            pass
        time.sleep(0.05)
"""
_MEASURED_BYTES = 96 * 1024
_TAKE = f"""
import socket, time
with socket.create_server(("0.0.0.0", {_PORT})) as server:
    print("ready", flush=True)
    server.settimeout(60)
    connection, _ = server.accept()
    connection.settimeout(60)
    began = time.monotonic()
    left = {_MEASURED_BYTES}
    while left > 0:
        received = len(connection.recv(65536))
        if not received:
            break
        left -= received
    print(int(({_MEASURED_BYTES} - left) / (time.monotonic() - began)), flush=True)
"""
_GIVE = f"""
import socket, sys
with socket.create_connection((sys.argv[1], {_PORT}), timeout=60) as connection:
    connection.sendall(bytes({_MEASURED_BYTES}))
"""


def passes(tools: Toolbox, source: str, target: str) -> bool:
    """Whether a datagram from one service reaches the other."""
    return _exchange(tools, source, target, _RECEIVE, _SEND) == "received"


def bytes_per_second(tools: Toolbox, source: str, target: str) -> int:
    """How fast one service's container can send to another over TCP."""
    return int(_exchange(tools, source, target, _TAKE, _GIVE))


def _exchange(tools: Toolbox, source: str, target: str, receive: str, send: str) -> str:
    """Run both programs; returns the last line of the receiver."""
    address = tools.cluster.address(target)
    receiver = tools.start_in_network(target, "python3", "-c", receive)
    try:
        assert receiver.stdout is not None
        if receiver.stdout.readline().strip() != "ready":
            raise FaultError(f"the probe does not start in the network of {target}")
        tools.in_network(source, "python3", "-c", send, address)
        output, _ = receiver.communicate("sent\n", timeout=60)
    finally:
        receiver.kill()
        receiver.wait()
    return output.strip()
