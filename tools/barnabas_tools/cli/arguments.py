"""Global options may stand anywhere on the line: `barnabas topic list --output json` too."""

from collections.abc import Sequence

_GLOBAL_OPTIONS = ("--bootstrap", "-b", "--output", "-o")


def hoist_global_options(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with every global option moved to the front.

    Arguments after a bare `--` are left alone. A global option without its value stays in place, so
    that the parser reports it.
    """
    hoisted: list[str] = []
    rest: list[str] = []
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        if argument == "--":
            rest.extend(arguments[position:])
            break
        name, separator, _ = argument.partition("=")
        has_value = bool(separator) and name in _GLOBAL_OPTIONS
        has_value = has_value or (argument[:2] in _GLOBAL_OPTIONS and len(argument) > 2)  # -ojson
        if argument in _GLOBAL_OPTIONS and position + 1 < len(arguments):
            hoisted.extend(arguments[position : position + 2])
            position += 2
            continue
        (hoisted if has_value else rest).append(argument)
        position += 1
    return hoisted + rest
