"""`barnabas`: the entry point of the command line.

Other packages add commands through the entry-point group `barnabas.commands`. A command's module
is imported only when the command, or the list of commands, is requested. Exit codes: 0 success,
1 the cluster refused or failed (Kafka's error name on stderr), 2 wrong usage, 130 interrupted by
Ctrl-C, SIGTERM or SIGHUP.
"""

import contextlib
import io
import logging
import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points, version
from typing import Annotated, Any

import typer
from barnabas_common.printable import printable
from typer.core import TyperGroup
from typer.main import get_command, get_group

from barnabas_tools.cli.arguments import hoist_global_options
from barnabas_tools.cli.printable import PrintableFormatter
from barnabas_tools.cli.settings import (
    DEFAULT_BOOTSTRAP,
    CommandFailed,
    Output,
    Settings,
    UsageFailed,
    settings_of,
)
from barnabas_tools.cli.termination import terminated_like_interrupted

INTERRUPTED = 130

_OWN_COMMANDS = {
    "broker": "barnabas_tools.cli.cluster.broker",
    "cluster": "barnabas_tools.cli.cluster.cluster",
    "config": "barnabas_tools.cli.admin.config",
    "consume": "barnabas_tools.cli.records.consume",
    "doctor": "barnabas_tools.cli.observe.doctor",
    "election": "barnabas_tools.cli.admin.election",
    "explain": "barnabas_tools.cli.observe.explain",
    "group": "barnabas_tools.cli.admin.group",
    "lab": "barnabas_tools.cli.cluster.lab",
    "log": "barnabas_tools.cli.log.log",
    "produce": "barnabas_tools.cli.records.produce",
    "reassign": "barnabas_tools.cli.admin.reassign",
    "replica": "barnabas_tools.cli.observe.replica",
    "topic": "barnabas_tools.cli.admin.topic",
    "transaction": "barnabas_tools.cli.admin.transaction",
    "watch": "barnabas_tools.cli.observe.watch",
    "zk": "barnabas_tools.cli.observe.zk",
}


class LazyGroup(TyperGroup):
    """The commands by name; each is loaded on first use."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted({*_OWN_COMMANDS, *_contributed()})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in _OWN_COMMANDS:
            command: Any = _command_or_group(import_module(_OWN_COMMANDS[cmd_name]).app)
        elif (load := _contributed().get(cmd_name)) is not None:
            command = _command_or_group(load())
        else:
            return None
        command.name = cmd_name
        return command

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the global options; a complaint becomes one line on stderr and exit code 2."""
        try:
            return super().make_context(*args, **kwargs)
        except BrokenPipeError:
            raise typer.Exit(0) from None
        except OSError as error:  # `--version > /dev/full`
            raise _failed(str(error), 1) from None
        except Exception as error:
            if (said := complaint(error)) is None:
                raise
            raise _failed(said, 2) from None

    def invoke(self, ctx: Any) -> Any:
        """Run a command; every failure becomes one line on stderr and an exit code."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # the reader has closed the pipe
            raise typer.Exit(0) from None
        except UsageFailed as failure:
            raise _failed(str(failure), 2) from None
        except CommandFailed as failure:
            raise _failed(str(failure), 1) from None
        except Exception as error:
            if (said := complaint(error)) is not None:
                raise _failed(said, 2) from None
            raise _failed(*explain(error, settings_of(ctx))) from None


def complaint(error: Exception) -> str | None:
    """What the parser says of a wrong option or argument; None for other errors.

    Typer has its own copy of click in some versions, so the classes have no common name.
    """
    say = getattr(error, "format_message", None)
    if say is None or type(error).__name__ == "NoArgsIsHelpError":
        return None
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "barnabas"
    return f"{' '.join(say().split()).rstrip('.')}; see {command} --help"


def _command_or_group(app: typer.Typer) -> Any:
    """Return a group if the app has a callback, otherwise its only command."""
    return get_group(app) if app.registered_callback is not None else get_command(app)


def _contributed() -> dict[str, Callable[[], Any]]:
    """Return the loaders of the commands of other packages, by name."""
    return {entry.name: entry.load for entry in entry_points(group="barnabas.commands")}


def explain(error: Exception, settings: Settings) -> tuple[str, int]:
    """Return the message and exit code of an error of the client or of the operating system;
    others are raised again."""
    from barnabas_common.errors import BarnabasError, InvalidArgumentError, NoBrokerReachableError

    if isinstance(error, InvalidArgumentError):
        return str(error), 2
    if isinstance(error, NoBrokerReachableError) and not settings.bootstrap_given:
        return f"{error}; other brokers are named with --bootstrap or BARNABAS_BOOTSTRAP", 1
    if isinstance(error, (BarnabasError, OSError)):
        return str(error) or type(error).__name__, 1
    raise error


def _failed(message: str, code: int) -> typer.Exit:
    with contextlib.suppress(OSError):
        print(f"barnabas: {printable(message)}", file=sys.stderr)
    return typer.Exit(code)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"barnabas {version('barnabas')}")
        raise typer.Exit


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def barnabas(
    context: typer.Context,
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap",
            "-b",
            metavar="HOST:PORT,...",
            envvar="BARNABAS_BOOTSTRAP",
            show_default=DEFAULT_BOOTSTRAP,
            help="Addresses of brokers of the cluster.",
        ),
    ] = None,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="A table, or one JSON object per line.")
    ] = Output.TABLE,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Barnabas: a Kafka cluster in Python, and the tools to watch it work."""
    context.obj = Settings(
        bootstrap=bootstrap or DEFAULT_BOOTSTRAP,
        output=output,
        bootstrap_given=bool(bootstrap),
    )


def _open_closed_streams() -> None:
    """Python has none for a descriptor that is closed, and a socket would take its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _configure_output() -> None:
    """Each line is written when it is complete, also into a pipe or a file.

    A name that stdout's encoding lacks must not end the command; stderr escapes by itself.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace", line_buffering=True)


def _drop_what_cannot_be_written() -> None:
    """The command has reported it already; Python must not do so at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def main() -> None:
    """The console script."""
    _open_closed_streams()
    _configure_output()
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PrintableFormatter())
    try:
        with terminated_like_interrupted():
            app(args=hoist_global_options(sys.argv[1:]), prog_name="barnabas")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        _drop_what_cannot_be_written()


if __name__ == "__main__":
    main()
