"""Opposites of the rules of the controller: elections beyond Kafka's, by who lost nothing."""

from tests.support.opposites import opposite

_ELIGIBLE = "eligibility/elections.py"

OFFLINE = (
    opposite(
        "... a member that lost records since",
        _ELIGIBLE,
        "    candidates = [replica for replica in online if replica not in lost]\n",
        "    candidates = list(online)\n",
        "unit/test_eligible_elections.py::test_who_leads_when_something_was_lost",
    ),
    opposite(
        "... a member that lost records since",
        "eligibility/eligible_leader_replicas.py",
        "broker.lost_nothing_since <= proved_at:",
        "True:",
        "unit/test_eligible.py::test_who_lost_something_since_it_proved_what_it_holds",
    ),
    opposite(
        "... a member that lost records since",
        "eligibility/eligible_leader_replicas.py",
        "    if len(state.isr) < minimum.size:\n        eligible",
        "    if True:\n        eligible",
        "unit/test_eligible.py::test_over_the_minimum_no_one_is_eligible",
    ),
    opposite(
        "... if all members lost records the one with the newest log leads alone",
        _ELIGIBLE,
        "state.with_leader(leader, (leader,)), live, reason)\n\n\ndef _newest",
        "state.with_leader(leader, state.isr), live, reason)\n\n\ndef _newest",
        "simulation/test_last_replica_standing.py::test_where_all_lost_something_one_leads_and_the_others_prove_themselves_again",
    ),
    opposite(
        "... if all members lost records the one with the newest log leads alone",
        _ELIGIBLE,
        "    awaited = () if unclean_allowed else eligibility.awaited\n",
        "    awaited = ()\n",
        "unit/test_eligible_elections.py::test_who_leads_when_something_was_lost",
    ),
    opposite(
        "... if all members lost records the one with the newest log leads alone",
        _ELIGIBLE,
        "    member = max(members, key=lambda member: _newest_log(member, eligibility))\n",
        "    member = members[0]\n",
        "simulation/test_last_replica_standing.py::test_where_all_lost_something_the_newest_log_leads",
    ),
    opposite(
        "... eligible replicas that are online and lost records too count",
        _ELIGIBLE,
        "    lost = (*members, *eligibility.lost_eligible)\n",
        "    lost = tuple(members)\n",
        "unit/test_eligible_elections.py::test_eligible_replicas_that_lost_something_are_asked_for_their_logs_too",
    ),
    opposite(
        "... eligible replicas that are online and lost records too count",
        _ELIGIBLE,
        "    newer = [r for r in asked if r not in members and logs[r] > logs[member]]\n",
        "    newer = list(asked)\n",
        "unit/test_eligible_elections.py::test_eligible_replicas_that_lost_something_are_asked_for_their_logs_too",
    ),
    opposite(
        "... so do replicas whose eligibility has ended",
        "eligibility/eligible_leader_replicas.py",
        "        r for r in assignment if r in state.eligible and r in online and r not in eligible\n",
        "        r for r in eligible if r not in present\n",
        "simulation/test_former_eligible_replicas.py::test_a_replica_that_is_eligible_no_longer_leads_if_its_log_is_newer",
    ),
    opposite(
        "... they are asked for their logs first",
        "partitions/log_queries.py",
        "                logs.update({one: logs.get(one) or NO_LOG for one in asked[partition]})\n",
        "                pass\n",
        "simulation/test_newest_logs.py::test_a_replica_that_does_not_answer_is_awaited_for_a_limited_time",
    ),
    opposite(
        "... they are asked for their logs first",
        "eligibility/current.py",
        "        if replica in context.brokers and context.brokers[replica].epoch == epoch\n",
        "",
        "simulation/test_newest_logs.py::test_what_an_earlier_incarnation_has_told_does_not_count",
    ),
    opposite(
        "... if no member has been registered for `eligible.leader.replicas.wait.ms`",
        _ELIGIBLE,
        "    if {*eligibility.given_up, *failed}.issuperset(state.isr) and not awaited:\n",
        "    if {*eligibility.absent, *failed}.issuperset(state.isr) and not awaited:\n",
        "unit/test_absent_members.py::test_before_the_refusal_names_who_will_lead",
    ),
    opposite(
        "... if no member has been registered for `eligible.leader.replicas.wait.ms`",
        "eligibility/eligible_leader_replicas.py",
        "state.eligible if state.eligible_under in (UNKNOWN, minimum.version) else ()",
        "state.eligible",
        "unit/test_absent_members.py::test_a_changed_minimum_ends_eligibility_even_if_it_is_as_before",
    ),
    opposite(
        "... while a member is only suspected",
        _ELIGIBLE,
        "    if suspected_members and lost == members:\n",
        "    if False:\n",
        "unit/test_election.py::test_a_suspect_of_the_isr_keeps_all_but_its_sound_members_from_leading",
    ),
)
