"""Is anybody listening at an address? One TCP connection, opened and closed.

The kernel answers for a process that is paused or busy, and refuses for one that is gone. So the
three answers differ as they should: accepted or swallowed means nothing, refused means something.
"""

import asyncio
import errno
import socket

from barnabas.runtime.network import Address, Knock

# Other errors of name resolution are those of the resolver, and say nothing of the host.
_NO_SUCH_NAME = (socket.EAI_NONAME, socket.EAI_NODATA)
# The knocker's own want: no file descriptor, port or memory left. It says nothing of the peer.
_OWN_WANT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL)
# The first of these that any of the host's addresses gave is the answer.
_BY_WEIGHT = (Knock.ANSWERED, Knock.SILENT, Knock.FAILED, Knock.REFUSED)


async def knock(address: Address, timeout: float) -> Knock:
    """See `Network.knock`."""
    try:
        async with asyncio.timeout(timeout):
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(*address, type=socket.SOCK_STREAM)
            answers = [await _try(family, target) for family, _, _, _, target in found]
    except TimeoutError:
        return Knock.SILENT
    except socket.gaierror as error:
        return Knock.FAILED if error.errno in _NO_SUCH_NAME else Knock.SILENT
    return next(answer for answer in _BY_WEIGHT if answer in answers)


async def _try(family: int, target: tuple[object, ...]) -> Knock:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            await asyncio.get_running_loop().sock_connect(probe, target)
    except ConnectionRefusedError:
        return Knock.REFUSED
    except TimeoutError:  # ETIMEDOUT: the kernel's own patience is over
        return Knock.SILENT
    except OSError as error:
        return Knock.SILENT if error.errno in _OWN_WANT else Knock.FAILED
    return Knock.ANSWERED
