"""`barnabas config`: show settings, and change them while the cluster runs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barnabas_tools.cli.output import print_message, print_rows
from barnabas_tools.cli.settings import (
    Settings,
    UsageFailed,
    parse_assignments,
    run_admin,
    settings_of,
)

if TYPE_CHECKING:
    from barnabas import Admin
    from barnabas.admin import ConfigResource
    from barnabas_common.messages.configs import ConfigDescription

app = typer.Typer(no_args_is_help=True, help="Show settings, or change them while brokers run.")

_COLUMNS = ("name", "value", "source", "dynamic")

TopicOption = Annotated[str | None, typer.Option("--topic", "-t", help="The settings of a topic.")]
BrokerOption = Annotated[int | None, typer.Option("--broker", help="The settings of one broker.")]
DefaultOption = Annotated[
    bool, typer.Option("--broker-default", help="The settings of all brokers.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", "--config", metavar="NAME=VALUE", help="Set a value. Repeatable."),
]
DeleteOption = Annotated[
    list[str] | None,
    typer.Option(
        "--delete", "--delete-config", metavar="NAME", help="Remove an override. Repeatable."
    ),
]
ValidateOption = Annotated[
    bool, typer.Option("--validate-only", help="Only check whether the change is valid.")
]


@app.callback()
def config() -> None:
    """Show settings, or change them while brokers run."""


@app.command()
def describe(
    context: typer.Context,
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_default: DefaultOption = False,
) -> None:
    """Show the settings in force and the source of each.

    Sources in order of precedence: topic, broker-dynamic, cluster-default, static (the broker's
    file), default.
    """
    settings = settings_of(context)
    resource = _resource(topic, broker, broker_default)
    configs = run_admin(settings, lambda admin: _describe(admin, resource))
    rows = [_row(found) for found in sorted(configs, key=lambda found: found.name)]
    print_rows(settings, _COLUMNS, rows)


@app.command()
def alter(
    context: typer.Context,
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_default: DefaultOption = False,
    assignments: SetOption = None,
    delete: DeleteOption = None,
    append: Annotated[
        list[str] | None,
        typer.Option("--append", metavar="NAME=WORD,...", help="Add to a list value. Repeatable."),
    ] = None,
    subtract: Annotated[
        list[str] | None,
        typer.Option(
            "--subtract", metavar="NAME=WORD,...", help="Remove from a list value. Repeatable."
        ),
    ] = None,
    validate_only: ValidateOption = False,
) -> None:
    """Change settings; they take effect on every broker within moments."""
    resource = _resource(topic, broker, broker_default)
    changes = changes_of(assignments, delete)
    added = parse_assignments(append or [], "--append")
    taken = parse_assignments(subtract or [], "--subtract")
    if not (changes or added or taken):
        raise UsageFailed("say what to change: --set, --delete, --append or --subtract")
    settings = settings_of(context)
    run_admin(
        settings,
        lambda admin: admin.incremental_alter_configs(
            resource, changes, append=added, subtract=taken, validate_only=validate_only
        ),
    )
    report(settings, resource, changes, validate_only)


def changes_of(assignments: list[str] | None, delete: list[str] | None) -> dict[str, str | None]:
    """Combine `--set NAME=VALUE` and `--delete NAME` in one mapping; None deletes."""
    changes: dict[str, str | None] = {**parse_assignments(assignments or [], "--set/--config")}
    for name in dict.fromkeys(delete or []):
        if name in changes:
            raise UsageFailed(f"{name} is both set and deleted")
        changes[name] = None
    return changes


def report(
    settings: Settings,
    resource: "ConfigResource",
    changes: Mapping[str, str | None],
    validate_only: bool = False,
) -> None:
    """Print what was changed."""
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


async def _describe(admin: "Admin", resource: "ConfigResource") -> "list[ConfigDescription]":
    if resource.resource_type == "topic":
        return await admin.describe_configs(resource.name)
    if resource.name:
        return await admin.describe_broker_configs(int(resource.name))
    return await admin.describe_cluster_default_configs()


def _row(found: "ConfigDescription") -> dict[str, Any]:
    return {
        "name": found.name,
        "value": found.value,
        "source": found.source,
        "dynamic": found.is_dynamic,
    }
