"""Runs a broker in this process, from its settings to the exit code.

Used by `barnabas broker run`. `LocalCluster` starts brokers by this module, because they start
sooner without the command line's parser.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from barnabas_broker.config.config import Config
from barnabas_broker.config.key import InvalidConfig
from barnabas_broker.config.keys import BROKER_KEYS
from barnabas_broker.config.properties import parse_properties

ENVIRONMENT_PREFIX = "BARNABAS_"
# The command line's own variables, which are not settings of brokers.
_OTHER_VARIABLES = {"BARNABAS_BOOTSTRAP"}


def properties_from_file(path: Path) -> dict[str, str]:
    """Read a properties file; raises InvalidConfig with one line."""
    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidConfig(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise InvalidConfig(f"{path}: {error}") from None


def properties_from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Read `log.dirs` from `BARNABAS_LOG_DIRS`, and so on; an unknown variable is an error."""
    names = {_variable(name): name for name in BROKER_KEYS}
    found: dict[str, str] = {}
    for variable, value in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in _OTHER_VARIABLES:
            continue
        if variable not in names:
            raise InvalidConfig(f"the environment's {variable} is no broker config")
        found[names[variable]] = value
    return found


def run_broker(properties: Mapping[str, str]) -> int:
    """Run one broker until it stops; returns the exit code. Raises InvalidConfig."""
    config = Config(properties)
    config.check_broker()
    from barnabas_broker.server import run

    return run(config)


def _variable(name: str) -> str:
    return ENVIRONMENT_PREFIX + name.upper().replace(".", "_")


def main() -> None:
    """`python -m barnabas_tools.cli.cluster.run_broker FILE`."""
    try:
        code = run_broker(properties_from_file(Path(sys.argv[1])))
    except InvalidConfig as error:
        print(f"barnabas: {error}", file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(code)


if __name__ == "__main__":
    main()
