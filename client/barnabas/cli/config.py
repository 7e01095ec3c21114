"""`barnabas config`: look at settings and change them while the cluster runs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barnabas.cli.output import print_message, print_rows
from barnabas.cli.settings import (
    Settings,
    UsageFailed,
    parse_assignments,
    run_async,
    settings_of,
)

if TYPE_CHECKING:
    from barnabas.admin import ConfigResource
    from barnabas.messages.configs import ConfigDescription

app = typer.Typer(no_args_is_help=True, help="Look at settings, change them while brokers run.")

_COLUMNS = ("name", "value", "source", "dynamic")

TopicOption = Annotated[str | None, typer.Option("--topic", "-t", help="The settings of a topic.")]
BrokerOption = Annotated[int | None, typer.Option("--broker", help="The settings of one broker.")]
DefaultOption = Annotated[
    bool, typer.Option("--broker-default", help="What is set for all brokers.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", "--config", metavar="NAME=VALUE", help="Set one. Repeatable."),
]
ValidateOption = Annotated[
    bool, typer.Option("--validate-only", help="Only say whether it could be done.")
]


@app.callback()
def config() -> None:
    """Look at settings and change them while brokers run."""


@app.command()
def describe(
    context: typer.Context,
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_default: DefaultOption = False,
) -> None:
    """The settings in force, and where each was found.

    In the order of precedence: topic, broker-dynamic, cluster-default, static (the broker's file),
    default.
    """
    settings = settings_of(context)
    resource = _resource(topic, broker, broker_default)
    print_rows(settings, _COLUMNS, run_async(_describe(settings, resource)))


@app.command()
def alter(
    context: typer.Context,
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_default: DefaultOption = False,
    assignments: SetOption = None,
    delete: Annotated[
        list[str] | None,
        typer.Option(
            "--delete", "--delete-config", metavar="NAME", help="Take an override away. Repeatable."
        ),
    ] = None,
    append: Annotated[
        list[str] | None,
        typer.Option("--append", metavar="NAME=WORD,...", help="Add to a list. Repeatable."),
    ] = None,
    subtract: Annotated[
        list[str] | None,
        typer.Option("--subtract", metavar="NAME=WORD,...", help="Take from a list. Repeatable."),
    ] = None,
    validate_only: ValidateOption = False,
) -> None:
    """Change settings; every broker acts by them within moments."""
    resource = _resource(topic, broker, broker_default)
    changes = changes_of(assignments, delete)
    lists = (
        parse_assignments(append or [], "--append"),
        parse_assignments(subtract or [], "--subtract"),
    )
    if not changes and not any(lists):
        raise UsageFailed("say what to change: --set, --delete, --append or --subtract")
    settings = settings_of(context)
    run_async(alter_configs(settings, resource, changes, *lists, validate_only))
    report(settings, resource, changes, validate_only)


def changes_of(assignments: list[str] | None, delete: list[str] | None) -> dict[str, str | None]:
    """`--set NAME=VALUE` and `--delete NAME` as one mapping; None deletes."""
    changes: dict[str, str | None] = {**parse_assignments(assignments or [])}
    for name in delete or []:
        if name in changes:
            raise UsageFailed(f"{name} is both set and deleted")
        changes[name] = None
    return changes


async def alter_configs(
    settings: Settings,
    resource: "ConfigResource",
    changes: Mapping[str, str | None],
    append: Mapping[str, str] | None = None,
    subtract: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> None:
    from barnabas import Admin

    async with Admin(bootstrap_servers=settings.bootstrap) as admin:
        await admin.incremental_alter_configs(
            resource, changes, append=append, subtract=subtract, validate_only=validate_only
        )


def report(
    settings: Settings,
    resource: "ConfigResource",
    changes: Mapping[str, str | None],
    validate_only: bool = False,
) -> None:
    """Say what was done."""
    verb = "could alter" if validate_only else "altered"
    parts = [
        f"{name} deleted" if value is None else f"{name}={value}" for name, value in changes.items()
    ]
    text = f"{verb} {resource}" + (f": {', '.join(parts)}" if parts else "")
    row = {
        "resource_type": resource.resource_type,
        "name": resource.name,
        "changes": dict(changes),
        "altered": not validate_only,
    }
    print_message(settings, text, row)


def _resource(topic: str | None, broker: int | None, broker_default: bool) -> "ConfigResource":
    from barnabas.admin import ConfigResource

    if (topic is not None) + (broker is not None) + broker_default != 1:
        raise UsageFailed("name one of --topic, --broker and --broker-default")
    if topic is not None:
        return ConfigResource.topic(topic)
    return ConfigResource.all_brokers() if broker is None else ConfigResource.broker(broker)


async def _describe(settings: Settings, resource: "ConfigResource") -> list[dict[str, Any]]:
    from barnabas import Admin

    async with Admin(bootstrap_servers=settings.bootstrap) as admin:
        if resource.resource_type == "topic":
            configs = await admin.describe_configs(resource.name)
        elif resource.name:
            configs = await admin.describe_broker_configs(int(resource.name))
        else:
            configs = await admin.describe_cluster_default_configs()
    return [_row(found) for found in sorted(configs, key=lambda found: found.name)]


def _row(found: "ConfigDescription") -> dict[str, Any]:
    return {
        "name": found.name,
        "value": found.value,
        "source": found.source,
        "dynamic": found.is_dynamic,
    }
