"""SIGTERM and SIGHUP end a command as Ctrl-C does, whatever the shell made it ignore."""

import signal
from collections.abc import Iterator

import pytest
from barnabas_tools.cli.termination import terminated_like_interrupted


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [(number, signal.getsignal(number)) for number in numbers]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("at_first", [signal.default_int_handler, signal.SIG_IGN])
def test_it_ends(number: signal.Signals, at_first: signal.Handlers) -> None:
    signal.signal(signal.SIGINT, at_first)
    with pytest.raises(KeyboardInterrupt), terminated_like_interrupted():
        signal.raise_signal(number)
    assert signal.getsignal(number) == signal.SIG_DFL


def test_nohup_is_respected() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with terminated_like_interrupted():
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
