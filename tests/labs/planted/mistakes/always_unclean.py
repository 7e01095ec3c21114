"""Any replica that is online may lead, in the ISR or not."""

import inspect
from typing import Any

from barnabas_controller.eligibility import elections

_eligible_offline = elections.eligible_offline
_signature = inspect.signature(_eligible_offline)


def eligible_offline(*arguments: Any, **named: Any) -> Any:
    bound = _signature.bind(*arguments, **named)
    bound.arguments["unclean_allowed"] = True
    return _eligible_offline(*bound.args, **bound.kwargs)


elections.eligible_offline = eligible_offline
