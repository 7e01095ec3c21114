"""Whether a process listens at an address: one TCP connection, opened and closed.

The kernel accepts connections for a process that is paused or busy, and refuses them after a
process has ended. So an accepted or unanswered connection proves nothing, and a refused connection
shows that the process has ended.
"""

import asyncio
import errno
import socket

from barnabas_common.runtime.network import Address, ProbeResult

# Other errors of name resolution are the resolver's and say nothing about the host.
_NO_SUCH_NAME = (socket.EAI_NONAME, socket.EAI_NODATA)
# This process has no file descriptor, port or memory left, which says nothing about the peer.
_OWN_SHORTAGE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL)
# If the addresses of a host have different results, the first of these counts.
_BY_WEIGHT = (ProbeResult.ANSWERED, ProbeResult.SILENT, ProbeResult.FAILED, ProbeResult.REFUSED)


async def probe(address: Address, timeout: float) -> ProbeResult:
    """See `Network.probe`."""
    try:
        async with asyncio.timeout(timeout):
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(*address, type=socket.SOCK_STREAM)
            answers = [await _try(family, target) for family, _, _, _, target in found]
    except TimeoutError:
        return ProbeResult.SILENT
    except socket.gaierror as error:
        return ProbeResult.FAILED if error.errno in _NO_SUCH_NAME else ProbeResult.SILENT
    return next(answer for answer in _BY_WEIGHT if answer in answers)


async def _try(family: int, target: tuple[object, ...]) -> ProbeResult:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            await asyncio.get_running_loop().sock_connect(probe, target)
    except ConnectionRefusedError:
        return ProbeResult.REFUSED
    except TimeoutError:  # ETIMEDOUT: the kernel gave up
        return ProbeResult.SILENT
    except OSError as error:
        return ProbeResult.SILENT if error.errno in _OWN_SHORTAGE else ProbeResult.FAILED
    return ProbeResult.ANSWERED
