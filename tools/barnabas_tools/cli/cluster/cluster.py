"""`barnabas cluster`: start, stop and destroy a cluster of local processes."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from barnabas_common.printable import printable

from barnabas_tools.cli.cluster.broker import DiskOption
from barnabas_tools.cli.output import confirmed, counted, note, print_message, print_rows
from barnabas_tools.cli.settings import (
    CommandFailed,
    Settings,
    UsageFailed,
    check_reader,
    parse_assignments,
    settings_of,
)

if TYPE_CHECKING:
    from barnabas_tools.local.cluster import LocalCluster

app = typer.Typer(no_args_is_help=True, help="Start, stop and break a local cluster.")

DEFAULT_DIRECTORY = Path(".barnabas")
DEFAULT_PORT = 9092
_STATUS_COLUMNS = ("member", "state", "pid", "address", "memory_mb", "log")

DirectoryOption = Annotated[Path, typer.Option("--dir", help="The cluster's folder.")]
BrokerArgument = Annotated[int, typer.Argument(metavar="N", help="The broker's id.")]


@app.callback()
def cluster() -> None:
    """Start, stop and break a local cluster: ZooKeeper and brokers as processes of this machine."""


@app.command()
def start(
    context: typer.Context,
    brokers: Annotated[
        int | None, typer.Option(min=1, show_default="3", help="The number of brokers.")
    ] = None,
    directory: DirectoryOption = DEFAULT_DIRECTORY,
    port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, show_default=str(DEFAULT_PORT), help="The first broker's port."
        ),
    ] = None,
    configs: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A broker config. Repeatable."),
    ] = None,
    disk: DiskOption = None,
    pause_points: Annotated[
        bool, typer.Option("--pause-points", help="Let files in DIR/pause hold brokers.")
    ] = False,
) -> None:
    """Start a new or a stopped cluster, and return when every broker serves."""
    settings = settings_of(context)
    from barnabas_tools.local.layout import load_layout, pause_directory

    given = parse_assignments(configs or [])
    if disk is not None:
        given["log.disk"] = disk.value
    if pause_points:
        given["pause.directory"] = str(pause_directory(directory.absolute()))
    with _one_line_failures():
        from barnabas_tools.local.cluster import LocalCluster

        if load_layout(directory.absolute()) is None:
            port = DEFAULT_PORT if port is None else port
        elif given and (running := _find(directory).running_brokers()):
            options = {"--set": configs, "--disk": disk, "--pause-points": pause_points}
            named = ", ".join(name for name, value in options.items() if value)
            verb = "runs" if len(running) == 1 else "run"
            raise CommandFailed(
                f"{counted(len(running), 'broker')} of the cluster {verb} already; {named} needs a"
                " stop and a start"
            )
        local = LocalCluster(directory, brokers, given, port, report=note)
        if local.complete:
            text = f"the cluster runs already: {local.bootstrap}"
            print_message(settings, text, _cluster_row(local, started=False))
            return
        local.start()
        _say_started(settings, local, directory)


@app.command()
def stop(context: typer.Context, directory: DirectoryOption = DEFAULT_DIRECTORY) -> None:
    """Shut every broker down cleanly, then ZooKeeper; topics and records are kept."""
    with _one_line_failures():
        local = _find(directory)
        if not local.running_brokers() and not local.zookeeper.running:
            note("the cluster does not run")
            return
        local.stop()
    print_message(settings_of(context), "cluster stopped", {"stopped": True})


@app.command()
def status(context: typer.Context, directory: DirectoryOption = DEFAULT_DIRECTORY) -> None:
    """Show which processes run; exit code 1 unless all do."""
    with _one_line_failures():
        local = _find(directory)
        members = [local.zookeeper, *map(local.broker, local.broker_ids)]
        rows = [_status_row(member) for member in members]
    print_rows(settings_of(context), _STATUS_COLUMNS, rows)
    if not all(row["state"] == "running" for row in rows):
        raise typer.Exit(1)


@app.command()
def kill(
    context: typer.Context, broker: BrokerArgument, directory: DirectoryOption = DEFAULT_DIRECTORY
) -> None:
    """Kill a broker with SIGKILL, as a crash would."""
    with _one_line_failures():
        _find(directory).kill(broker)
    row = {"broker": broker, "killed": True}
    print_message(settings_of(context), f"broker {broker} killed", row)


@app.command()
def restart(
    context: typer.Context, broker: BrokerArgument, directory: DirectoryOption = DEFAULT_DIRECTORY
) -> None:
    """Restart a broker; if it runs it is shut down cleanly first."""
    with _one_line_failures():
        _find(directory).restart(broker)
    row = {"broker": broker, "restarted": True}
    print_message(settings_of(context), f"broker {broker} serves again", row)


@app.command()
def logs(
    context: typer.Context,
    broker: BrokerArgument,
    directory: DirectoryOption = DEFAULT_DIRECTORY,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue until Ctrl-C.")] = False,
    lines: Annotated[
        int | None, typer.Option("--lines", "-n", min=0, help="Only the last N lines.")
    ] = None,
) -> None:
    """Print a broker's log output."""
    from barnabas_tools.local.log_tail import follow_file, last_lines

    if settings_of(context).json:
        raise UsageFailed("logs are lines of text and cannot be printed with --output json")
    with _one_line_failures():
        path = _find(directory).broker(broker).log_file
    try:
        text, position = last_lines(path, lines)
    except FileNotFoundError:
        raise CommandFailed(f"broker {broker} has logged nothing yet ({path})") from None
    sys.stdout.write(printable(text, keep="\n\t"))
    if follow:
        sys.stdout.flush()
        for more in follow_file(path, position, check_reader):
            sys.stdout.write(printable(more, keep="\n\t"))
            sys.stdout.flush()


@app.command()
def destroy(
    context: typer.Context,
    directory: DirectoryOption = DEFAULT_DIRECTORY,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Kill the cluster and remove all its topics and records."""
    with _one_line_failures():
        local = _find(directory)
        question = f"Remove the cluster in {local.directory} with all records?"
        if not yes and not confirmed(question):
            raise CommandFailed("nothing removed")
        local.destroy()
    print_message(settings_of(context), "cluster destroyed", {"destroyed": True})


@contextmanager
def _one_line_failures() -> Iterator[None]:
    from barnabas_tools.local.errors import ClusterError

    try:
        yield
    except ClusterError as error:
        raise CommandFailed(str(error)) from None


def _find(directory: Path) -> "LocalCluster":
    from barnabas_tools.local.cluster import LocalCluster

    report: Callable[[str], None] = note
    return LocalCluster.find(directory, report)


def directory_option(directory: Path) -> str:
    """The option that names the directory, for commands to be copied into a shell."""
    return "" if directory == DEFAULT_DIRECTORY else f" --dir {shlex.quote(str(directory))}"


def _cluster_row(local: "LocalCluster", started: bool) -> dict[str, Any]:
    return {
        "started": started,
        "bootstrap": local.bootstrap,
        "zookeeper": local.zookeeper_connect,
        "directory": str(local.directory),
    }


def _say_started(settings: Settings, local: "LocalCluster", directory: Path) -> None:
    option = directory_option(directory)
    print_message(settings, f"serving at {local.bootstrap}", _cluster_row(local, started=True))
    if not settings.json:
        print()
        print(f"  export BARNABAS_BOOTSTRAP={local.bootstrap}")
        print("  barnabas topic create hello --partitions 3")
        print("  echo world | barnabas produce hello")
        print("  barnabas consume hello --from-beginning")
        print(f"  barnabas cluster status{option}")
        print(f"  barnabas cluster stop{option}")


def _status_row(member: Any) -> dict[str, Any]:
    from barnabas_tools.local.ports import HOST

    process = member.process
    return {
        "member": member.name,
        "state": "running" if process else "stopped",
        "pid": process.pid if process else None,
        "address": f"{HOST}:{member.ports[0]}",
        "memory_mb": process.memory_mb if process else None,
        "log": str(member.log_file),
    }
