"""Why this broker leads, or why there is no leader; and why no other broker leads."""

from barnabas_common.events import EventKind
from barnabas_common.messages.sentinels import NO_LEADER

from barnabas.explain.explanation import About, Sentence
from barnabas.explain.history import Decision, decisions, election_of, number, texts
from barnabas.explain.view import PartitionView

# How far the chain of leaders is followed back.
LINKS = 3


def leading(view: PartitionView) -> list[Sentence]:
    """The present leader first, then earlier ones."""
    past = decisions(view)
    if view.leader_id == NO_LEADER:
        return [*_no_leader(view), *_before(past, view.leader_epoch + 1)]
    election = election_of(past, view.leader_id, view.leader_epoch)
    if election is None:
        if held_back := _held_back(view):
            return held_back
        text = (
            f"broker {view.leader_id} leads in epoch {view.leader_epoch};"
            " the cause is no longer known"
        )
        return [Sentence(About.LEADER, text)]
    text = (
        f"broker {election.leader} has led since epoch {election.leader_epoch}"
        f"{_now(view, election)}: {election.cause}"
    )
    sentences = [Sentence(About.LEADER, text, election.time_ms)]
    if election.unclean:
        text = (
            f"the election of broker {election.leader} was unclean: it was not in the ISR, and"
            " records that only members of the ISR had are lost"
        )
        sentences.append(Sentence(About.LEADER, text, election.time_ms))
    if election.passed_over:
        text = (
            f"replicas before broker {election.leader} in the assignment:"
            f" {'; '.join(election.passed_over)}"
        )
        sentences.append(Sentence(About.LEADER, text, election.time_ms))
    return [*sentences, *_before(past, election.leader_epoch)]


def _held_back(view: PartitionView) -> list[Sentence]:
    """Of a state that names a leader, while no replica leads and elections are refused."""
    refusals = view.partition_events(EventKind.ELECTION_REFUSED)
    if view.leader is not None or not refusals:
        return []
    text = (
        f"ZooKeeper names broker {view.leader_id} in epoch {view.leader_epoch}, but no broker"
        f" leads: {refusals[-1].cause}"
    )
    return [Sentence(About.LEADER, text, refusals[-1].time_ms)]


def _now(view: PartitionView, election: Decision) -> str:
    if election.leader_epoch == view.leader_epoch:
        return ""
    return f" (now {view.leader_epoch}, because the ISR has changed)"


def _before(past: list[Decision], epoch: int) -> list[Sentence]:
    """The leaders before that epoch, the latest first, as far as no epoch is missing."""
    sentences = []
    by_epoch = {decision.leader_epoch: decision for decision in past}
    for _ in range(LINKS):
        last = by_epoch.get(epoch - 1)
        start = None if last is None else election_of(past, last.leader, last.leader_epoch)
        if start is None:
            break
        led = "there was no leader" if start.leader == NO_LEADER else f"broker {start.leader} led"
        text = f"before that, {led} from epoch {start.leader_epoch}: {start.cause}"
        sentences.append(Sentence(About.LEADER, text, start.time_ms))
        epoch = start.leader_epoch
    return sentences


def _no_leader(view: PartitionView) -> list[Sentence]:
    sentences = [Sentence(About.LEADER, "there is no leader now")]
    refusals = view.partition_events(EventKind.ELECTION_REFUSED)
    if refusals:
        last = refusals[-1]
        text = f"no leader could be elected: {last.cause}"
        sentences.append(Sentence(About.LEADER, text, last.time_ms))
        reasons = texts(last, "passed_over")
        if reasons:
            text = f"the candidates, in assignment order: {'; '.join(reasons)}"
            sentences.append(Sentence(About.LEADER, text, last.time_ms))
    absent = [broker for broker in view.isr if broker not in view.live]
    leads_after_wait = refusals and number(refusals[-1], "leads_after_wait") >= 0
    if absent and not leads_after_wait:
        names = " or ".join(f"broker {broker}" for broker in absent)
        text = f"it waits for {names}: only members of the ISR {view.isr} have every record"
        sentences.append(Sentence(About.LEADER, text))
    return sentences
