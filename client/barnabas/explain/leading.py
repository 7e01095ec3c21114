"""Why this broker leads, or nobody; and why not another."""

from barnabas.events import EventKind
from barnabas.explain.explanation import About, Sentence
from barnabas.explain.history import Decision, decisions, taking_office, texts
from barnabas.explain.view import NOBODY, PartitionView

# How far the chain of leaders is followed back.
LINKS = 3


def leading(view: PartitionView) -> list[Sentence]:
    """The present leader first, then its predecessors."""
    past = decisions(view)
    if view.leader_id == NOBODY:
        return [*_nobody(view), *_before(past, NOBODY, view.leader_epoch + 1)]
    office = taking_office(past, view.leader_id, view.leader_epoch)
    if office is None:
        text = f"broker {view.leader_id} leads in epoch {view.leader_epoch}; nobody remembers why"
        return [Sentence(About.LEADER, text)]
    text = (
        f"broker {office.leader} leads since epoch {office.leader_epoch}"
        f"{_now(view, office)}: {office.cause}"
    )
    sentences = [Sentence(About.LEADER, text, office.time_ms)]
    if office.unclean:
        text = (
            f"the election of broker {office.leader} was unclean: it was not in the ISR, and what"
            " only members of the ISR had is lost"
        )
        sentences.append(Sentence(About.LEADER, text, office.time_ms))
    if office.passed_over:
        text = f"before broker {office.leader} in the assignment: {'; '.join(office.passed_over)}"
        sentences.append(Sentence(About.LEADER, text, office.time_ms))
    return [*sentences, *_before(past, office.leader, office.leader_epoch)]


def _now(view: PartitionView, office: Decision) -> str:
    if office.leader_epoch == view.leader_epoch:
        return ""
    return f" (it is {view.leader_epoch} now, for the ISR has changed)"


def _before(past: list[Decision], leader: int, epoch: int) -> list[Sentence]:
    """Who led before that epoch, link by link."""
    sentences = []
    for _ in range(LINKS):
        earlier = [d for d in past if d.leader_epoch < epoch]
        if not earlier:
            break
        last = earlier[-1]
        start = taking_office(earlier, last.leader, last.leader_epoch) or last
        if last.leader == NOBODY:
            text = f"before, nobody led, since epoch {start.leader_epoch}: {start.cause}"
        else:
            text = (
                f"before, broker {last.leader} led since epoch {start.leader_epoch}: {start.cause}"
            )
        sentences.append(Sentence(About.LEADER, text, start.time_ms))
        epoch = start.leader_epoch
    return sentences


def _nobody(view: PartitionView) -> list[Sentence]:
    sentences = [Sentence(About.LEADER, "nobody leads now")]
    refusals = view.told(EventKind.ELECTION_REFUSED)
    if refusals:
        last = refusals[-1]
        text = f"no leader could be elected: {last.cause}"
        sentences.append(Sentence(About.LEADER, text, last.time_ms))
        reasons = texts(last, "passed_over")
        if reasons:
            text = f"the candidates, in the order of the assignment: {'; '.join(reasons)}"
            sentences.append(Sentence(About.LEADER, text, last.time_ms))
    absent = [broker for broker in view.isr if broker not in view.live]
    if absent:
        names = " or ".join(f"broker {broker}" for broker in absent)
        text = f"it waits for {names}: only a member of the ISR {view.isr} has every record"
        sentences.append(Sentence(About.LEADER, text))
    return sentences
