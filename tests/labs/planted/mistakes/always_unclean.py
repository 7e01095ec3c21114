"""Whoever is online may lead, in the ISR or not."""

import inspect
from typing import Any

from barnabas_controller import election

_elect_offline = election.elect_offline
_signature = inspect.signature(_elect_offline)


def elect_offline(*arguments: Any, **named: Any) -> Any:
    bound = _signature.bind(*arguments, **named)
    bound.arguments["unclean_allowed"] = True
    return _elect_offline(*bound.args, **bound.kwargs)


election.elect_offline = elect_offline
