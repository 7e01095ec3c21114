"""Slips of one line, to see whether a campaign finds what nobody has listed.

    python -m tests.support.single_line_bugs BUDGET [NAME ...] [--seed N]

makes each in a copy of the packages and plays fresh seeds there, until one fails or BUDGET
schedules have held. It prints the schedules until then, and the rule that saw it first. None of
them is an opposite of `tests/rules` or a seeded bug.
"""

from tests.support.single_line_bugs.bug import SingleLineBug
from tests.support.single_line_bugs.client_bugs import CLIENT
from tests.support.single_line_bugs.controller_bugs import CONTROLLER
from tests.support.single_line_bugs.coordinator_bugs import COORDINATORS
from tests.support.single_line_bugs.log_bugs import LOG
from tests.support.single_line_bugs.replica_bugs import REPLICA

SINGLE_LINE_BUGS: dict[str, SingleLineBug] = {
    bug.name: bug for bug in (*LOG, *REPLICA, *CONTROLLER, *CLIENT, *COORDINATORS)
}
