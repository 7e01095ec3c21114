"""What counts as a stalled event loop, and what does not."""

import pytest
from barnabas_controller.zookeeper.watchdog import StallMeter

TICK = 0.1


def test_a_loop_that_turns_is_never_stalled() -> None:
    meter = StallMeter(TICK)
    assert all(meter.look(TICK, turns) == 0.0 for turns in range(1, 1000))


def test_ticks_without_a_turn_add_up_until_the_next_turn() -> None:
    meter = StallMeter(TICK)
    meter.look(TICK, 1)
    assert [meter.look(TICK, 1) for _ in range(3)] == pytest.approx([0.1, 0.2, 0.3])
    assert meter.look(TICK, 2) == 0.0


def test_a_pause_of_the_whole_process_counts_no_more_than_two_ticks() -> None:
    meter = StallMeter(TICK)
    meter.look(TICK, 1)
    assert meter.look(3600.0, 1) == pytest.approx(2 * TICK)
    assert meter.look(TICK, 2) == 0.0
