"""`barnabas doctor`: whether a client here can reach every broker, and what is wrong otherwise.

A client connects to the bootstrap addresses first, and then to the addresses that the brokers
advertise. The second set is where most setups with containers fail: an address that is right on
the host is wrong inside a container.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from barnabas_common.errors import BarnabasError
from barnabas_common.runtime import Address, Network, Service
from barnabas_common.runtime.network import ProbeResult

from barnabas_tools.cli.output import Row, counted, note, print_rows
from barnabas_tools.cli.settings import UsageFailed, check_seconds, run_async, settings_of

if TYPE_CHECKING:
    from barnabas_common.messages.metadata import MetadataResponse

app = typer.Typer(add_completion=False)

COLUMNS = ("address", "source", "broker", "result")
TIMEOUT_SECONDS = 3.0
_PAUSE_SECONDS = 0.2
_LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Answer:
    """What the broker at an address says of itself and of its cluster."""

    broker_id: int
    cluster_id: str
    controller_id: int
    advertised: Mapping[int, str]  # the address of each broker, on the listener that was used


@dataclass(frozen=True)
class Tried:
    """An address, how the network reached it, and the broker's answer or why there is none."""

    address: str
    reached: ProbeResult
    answer: Answer | None = None
    failure: str = ""


@app.command()
def doctor(
    context: typer.Context,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", help="Try again until nothing is wrong.")
    ] = 0.0,
) -> None:
    """Connect to every address that the brokers advertise; say what is wrong, one line each.

    Run it where the client runs. The exit code is 0 if a client here can reach every broker.
    """
    check_seconds("--wait", wait)
    settings = settings_of(context)
    try:
        bootstrap = [str(Address.parse(each)) for each in settings.bootstrap.split(",")]
    except ValueError as error:
        raise UsageFailed(str(error)) from None
    rows = run_async(_until_right(bootstrap, wait))
    print_rows(settings, COLUMNS, rows)
    wrong = faults(rows)
    for row in wrong:
        note(f"barnabas: {row['source']} {row['address']}: {row['result']}")
    if wrong:
        raise typer.Exit(1)
    brokers = len({row["broker"] for row in rows})
    note(f"{counted(brokers, 'broker')}, every address answers")


def faults(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with a result other than ok."""
    return [row for row in rows if row["result"] != "ok"]


def diagnose(bootstrap: Sequence[str], tried: Mapping[str, Tried]) -> list[Row]:
    """Return a row for each bootstrap address, and for each address that a broker advertises."""
    answers = [tried[each].answer for each in bootstrap]
    known = [answer for answer in answers if answer is not None]
    cluster = known[0].cluster_id if known else ""
    ids = {answer.broker_id for answer in known}
    rows: list[Row] = []
    for address in bootstrap:
        answer = tried[address].answer
        rows.append(
            {
                "address": address,
                "source": "bootstrap",
                "broker": answer.broker_id if answer else None,
                "result": _fault_of_bootstrap(tried[address], cluster, ids) or "ok",
            }
        )
    for broker_id, address in sorted(_advertised(known)):
        rows.append(
            {
                "address": address,
                "source": f"advertised by broker {broker_id}",
                "broker": broker_id,
                "result": _fault_of_advertised(broker_id, tried[address], cluster) or "ok",
            }
        )
    return rows


def _advertised(answers: Iterable[Answer]) -> set[tuple[int, str]]:
    return {pair for answer in answers for pair in answer.advertised.items()}


def _fault_of_bootstrap(tried: Tried, cluster: str, ids: Set[int]) -> str | None:
    if tried.answer is None:
        return _unreached(tried)
    if tried.answer.cluster_id != cluster:
        return f"belongs to another cluster, {tried.answer.cluster_id}, not {cluster}"
    if tried.answer.controller_id < 0:
        return "the broker knows of no controller"
    if unknown := ids - set(tried.answer.advertised):
        return f"the broker does not know broker {min(unknown)}"
    return None


def _fault_of_advertised(broker_id: int, tried: Tried, cluster: str) -> str | None:
    change = f"change advertised.listeners of broker {broker_id}"
    if tried.answer is None:
        host = Address.parse(tried.address).host
        if tried.reached is not ProbeResult.ANSWERED and host in _LOCAL:
            return (
                f"nothing listens there; {host} is only right for clients on the broker's own host:"
                f" use another listener of the brokers, or {change}"
            )
        return f"{_unreached(tried)}; start the broker, or {change}"
    if tried.answer.cluster_id != cluster:
        return f"a broker of another cluster answers; {change}"
    if tried.answer.broker_id != broker_id:
        return f"broker {tried.answer.broker_id} answers, not broker {broker_id}; {change}"
    return None


def _unreached(tried: Tried) -> str:
    host = Address.parse(tried.address).host
    match tried.reached:
        case ProbeResult.REFUSED:
            return "nothing listens there"
        case ProbeResult.SILENT:
            return f"no connection within {TIMEOUT_SECONDS:g} s"
        case ProbeResult.FAILED:
            return f"the name {host} is unknown here, or no route leads to it"
        case _:
            return f"something listens there, but no broker answers ({tried.failure})"


async def _until_right(bootstrap: Sequence[str], wait: float) -> list[Row]:
    """Examine and diagnose, again and again for at most `wait` seconds while something is wrong."""
    now = asyncio.get_running_loop().time
    deadline = now() + wait
    while True:
        rows = diagnose(bootstrap, await _examine(bootstrap))
        if not faults(rows) or now() >= deadline:
            return rows
        await asyncio.sleep(_PAUSE_SECONDS)


async def _examine(bootstrap: Sequence[str]) -> dict[str, Tried]:
    """Try the bootstrap addresses, then every address that the answers advertise."""
    from barnabas_common.transport.grpc_network import GrpcNetwork

    network = GrpcNetwork()
    tried = {address: await _try(network, address) for address in bootstrap}
    known = [each.answer for each in tried.values() if each.answer is not None]
    for _, address in sorted(_advertised(known)):
        if address not in tried:
            tried[address] = await _try(network, address)
    return tried


async def _try(network: Network, text: str) -> Tried:
    from barnabas_common.messages.events import DescribeEventsRequest
    from barnabas_common.messages.metadata import MetadataRequest

    address = Address.parse(text)
    reached = await network.probe(address, TIMEOUT_SECONDS)
    if reached is not ProbeResult.ANSWERED:
        return Tried(text, reached)
    channel = network.connect(address, Service.ADMIN)
    try:
        itself = await channel.call(DescribeEventsRequest(after=-1), TIMEOUT_SECONDS)
        metadata = await channel.call(MetadataRequest(), TIMEOUT_SECONDS)
    except BarnabasError as error:
        return Tried(text, reached, failure=str(error))
    finally:
        await channel.close()
    return Tried(text, reached, _answer(itself.broker_id, metadata))


def _answer(broker_id: int, metadata: "MetadataResponse") -> Answer:
    advertised = {
        broker.broker_id: str(Address(broker.host, broker.port)) for broker in metadata.brokers
    }
    return Answer(broker_id, metadata.cluster_id, metadata.controller_id, advertised)
