"""Signals that end a run: noted while it goes on, and raised when it has ended in good order."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from transom.program import interrupt
from transom.program.interrupt import ENDING, Interrupt, Terminated, listen


@pytest.fixture(autouse=True)
def handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test begins as a program does, and time stands still in it."""
    before = {number: signal.getsignal(number) for number in ENDING}
    monkeypatch.setattr(interrupt, "_heard", {})
    monkeypatch.setattr(interrupt, "_now", lambda: 0.0)
    for number in ENDING:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def raised(number: signal.Signals) -> type[BaseException]:
    return KeyboardInterrupt if number == signal.SIGINT else Terminated


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_is_noted_and_raised_at_the_end(number: signal.Signals) -> None:
    with Interrupt() as noted:
        send(number)
        assert noted.requested
    with pytest.raises(raised(number)):
        noted.notify()
    with Interrupt() as none:
        pass
    none.notify()


@pytest.mark.parametrize("number", ENDING)
def test_a_second_signal_interrupts_at_once(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    with Interrupt():
        send(signal.SIGTERM)
        monkeypatch.setattr(interrupt, "_now", lambda: 5.0)
        with pytest.raises(raised(number)):
            send(number)


def test_what_is_sent_twice_at_once_is_one_signal() -> None:
    """A shell and the kernel both report of a hang-up, and `timeout` reports a process and its group."""
    with Interrupt() as noted:
        send(signal.SIGHUP)
        send(signal.SIGHUP)
    with pytest.raises(Terminated) as ended:
        noted.notify()
    assert ended.value.code == 129


def test_who_has_handlers_keeps_them() -> None:
    heard: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    listen()
    with Interrupt() as noted:
        send(signal.SIGTERM)
        send(signal.SIGHUP)
    assert heard == [signal.SIGTERM] and not noted.requested


def test_a_program_that_listens_ends_in_good_order() -> None:
    listen()
    with pytest.raises(SystemExit) as ended:
        send(signal.SIGTERM)
    assert ended.value.code == 143
    assert str(ended.value) == "ended by SIGTERM"
