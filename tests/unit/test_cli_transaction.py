"""`barnabas transaction`: wrong usage is told before any broker is asked."""

import pytest
from barnabas_tools.cli.main import app
from typer.testing import CliRunner


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("describe", "--transactional-id"),
        ("list --duration-filter soon", "--duration-filter"),
        ("list --producer-id copy", "--producer-id"),
        ("find-hanging --partition 0", "--partition needs --topic"),
        ("find-hanging --topic orders --max-transaction-timeout -1", "--max-transaction-timeout"),
        ("abort --topic orders", "--partition"),
        ("abort --topic orders --partition 0", "name either --start-offset"),
        ("abort --topic orders --partition 0 --producer-id 1", "name either --start-offset"),
        ("abort --topic orders --partition 0 --start-offset 0 --producer-epoch 1", "name either"),
        ("abort --topic orders --partition -1 --start-offset 0", "--partition"),
        (
            "abort --topic orders --partition 0 --producer-id 1 --producer-epoch 32768"
            " --coordinator-epoch 0",
            "--producer-epoch",
        ),
        ("describe-producers --topic orders", "--partition"),
    ],
)
def test_wrong_usage(arguments: str, told: str) -> None:
    nowhere = ["--bootstrap", "127.0.0.1:1"]
    refused = CliRunner().invoke(app, [*nowhere, "transaction", *arguments.split()])
    assert refused.exit_code == 2
    assert told in refused.output
    assert "127.0.0.1" not in refused.output


def test_explain_takes_one_subject() -> None:
    nowhere = ["--bootstrap", "127.0.0.1:1"]
    given = ["explain", "orders-0", "--transactional-id", "copy"]
    refused = CliRunner().invoke(app, [*nowhere, *given])
    assert refused.exit_code == 2
    assert "one of them" in refused.output
