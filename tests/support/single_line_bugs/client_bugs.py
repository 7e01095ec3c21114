"""Slips in the clients: offsets of answers, retries, positions, commits."""

from tests.support.single_line_bugs.bug import SingleLineBug

CLIENT = (
    SingleLineBug(
        "offset-of-the-next-batch",
        "producer/batch_completion.py",
        "offset += batch.offsets",
        "offset += 1",
        "the second batch of a request is acknowledged at a wrong offset",
    ),
    SingleLineBug(
        "retries-in-reverse",
        "producer/queues.py",
        "self.closed.extendleft(reversed(batches))",
        "self.closed.extendleft(batches)",
        "without idempotence batches are sent again in another order",
    ),
    SingleLineBug(
        "first-record-in-mid-batch",
        "consumer/completed_fetch.py",
        "records = [record for record in records if record.offset >= self.state.position]",
        "records = [record for record in records if record.offset > self.state.position]",
        "a consumer that continues within a batch skips a record",
    ),
    SingleLineBug(
        "stored-before-it-is",
        "consumer/commits.py",
        "        if failure is None:\n            self.stored.update(offsets)\n",
        "        self.stored.update(offsets)\n        if failure is None:\n",
        "a commit that was refused counts as stored, and is not made again",
    ),
    SingleLineBug(
        "coordinator-not-forgotten",
        "cluster/coordinator.py",
        "            self.forget(error, address)\n",
        "",
        "a client stays with a coordinator that does not answer",
    ),
)
