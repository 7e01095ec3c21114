"""`barnabas broker`: run one broker in the foreground, or check a broker's health."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from barnabas_tools.cli.output import counted, print_message
from barnabas_tools.cli.settings import (
    CommandFailed,
    UsageFailed,
    parse_assignments,
    run_async,
    settings_of,
)


class DiskKind(StrEnum):
    """Values of `log.disk`."""

    POSIX = "posix"
    VOLATILE = "volatile"


DiskOption = Annotated[
    DiskKind | None,
    typer.Option("--disk", help="volatile: kill -9 is a power loss; unflushed data is lost."),
]

app = typer.Typer(no_args_is_help=True, help="Run one broker, or check its health.")


@app.callback()
def broker() -> None:
    """Run one broker in the foreground, or check a broker's health."""


@app.command()
def run(
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="A properties file.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A setting; overrides the file. Repeatable."
        ),
    ] = None,
    environment: Annotated[
        bool,
        typer.Option("--env", help="Read settings from variables like BARNABAS_LOG_DIRS."),
    ] = False,
    disk: DiskOption = None,
    pause_dir: Annotated[
        Path | None,
        typer.Option("--pause-dir", metavar="DIR", help="Files in DIR hold it at pause points."),
    ] = None,
) -> None:
    """Run a broker until SIGTERM or Ctrl-C; it then moves its leaderships and shuts down."""
    from barnabas_broker.config.key import InvalidConfig

    from barnabas_tools.cli.cluster.run_broker import (
        properties_from_environment,
        properties_from_file,
        run_broker,
    )

    try:
        properties = properties_from_file(config) if config else {}
        if environment:
            properties |= properties_from_environment(os.environ)
        properties |= parse_assignments(settings or [])
        if disk is not None:
            properties["log.disk"] = disk.value
        if pause_dir is not None:
            properties["pause.directory"] = str(pause_dir.absolute())
        code = run_broker(properties)
    except InvalidConfig as error:
        raise CommandFailed(str(error)) from None
    raise typer.Exit(code)


@app.command()
def health(
    context: typer.Context,
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="A client listener.")],
) -> None:
    """Exit with 0 if the broker at this address answers and knows a controller."""
    from barnabas_common.runtime import Address

    from barnabas_tools.local.readiness import ask

    try:
        Address.parse(address)
    except ValueError as error:
        raise UsageFailed(str(error)) from None
    metadata = run_async(ask(address))
    if metadata.controller_id < 0:
        raise CommandFailed(f"the broker at {address} knows of no controller")
    brokers = counted(len(metadata.brokers), "broker")
    row = {"brokers": len(metadata.brokers), "controller": metadata.controller_id}
    text = f"{brokers}, the controller is broker {metadata.controller_id}"
    print_message(settings_of(context), text, row)
