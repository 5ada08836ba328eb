"""What is remembered of work that is put in order: it can be saved, and what was lost never becomes less."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.properties.scheduling_trials import Trial, trial_of
from tests.properties.streams import cut
from transom.core.errors import CheckpointError
from transom.pipeline import scheduled_state, scheduled_work
from transom.pipeline.group import GROUP_CLASSES
from transom.pipeline.scheduled_state import SCHEDULED_CLASSES, ScheduledJoinState, Shed
from transom.scheduling.levels import levels_of
from transom.state import codec


def running() -> tuple[Trial, ScheduledJoinState]:
    """In the middle of its work, with pairs that are not told yet and rows that were lost."""
    for seed in range(50):
        trial = trial_of(Random(f"saved {seed}"), "admandf", "shed")
        for push in cut(trial.random, trial.rows):
            trial.push(push)
            state = trial.group.work.state
            if state.pairs and any(account.shed.total for account in state.accounts.values()):
                return trial, state
        trial.group.close()
    pytest.fail("nothing was found, or nothing was lost")


def test_every_class_of_it_comes_back_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduled_work, "PAIRS_AT_ONCE", 3)
    trial, state = running()
    trial.group.work.drain()
    saved = codec.encode(state)
    back = codec.decode(saved, GROUP_CLASSES)
    assert isinstance(back, ScheduledJoinState)
    assert codec.encode(back) == saved
    assert {type(back).__name__, *_names(back)} == {cls.__name__ for cls in SCHEDULED_CLASSES}
    with pytest.raises(CheckpointError):
        codec.decode(saved, SCHEDULED_CLASSES)  # rows are kept in classes of others
    trial.group.close()


def _names(state: ScheduledJoinState) -> set[str]:
    parts = [*state.sides, state.backlog, *state.backlog.sides, state.policy, *state.pairs, *state.accounts.values()]
    parts += [account.shed for account in state.accounts.values()]
    return {type(part).__name__ for part in parts}


def test_what_is_lost_is_reported_ever_coarser_but_never_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduled_state, "_MOST_SPANS", 8)
    random, shed, lost = Random(3), Shed(), []
    for _ in range(60):
        times = sorted(random.randrange(1000) for _ in range(random.randint(1, 6)))
        lost += times
        shed.note(np.array(times))
        assert len(shed.first) <= 8 and shed.total == len(lost)
        assert (shed.first <= shed.last).all() and (shed.first[1:] > shed.last[:-1]).all()
        for first, last, count in zip(shed.first, shed.last, shed.rows, strict=True):
            assert count == sum(first <= t <= last for t in lost)


def test_queries_are_in_one_order_that_covers_both_of_their_windows() -> None:
    random = Random(5)
    for _ in range(50):
        windows = {f"q{i}": (random.randint(1, 9), random.randint(1, 9)) for i in range(random.randint(1, 7))}
        levels = levels_of(windows)
        assert sorted(levels.names) == sorted(windows) and list(levels.level) == sorted(levels.level)
        assert list(levels.sizes) == sorted(set(levels.sizes)) and len(levels.sizes) == levels.level[-1]
        for name, level in zip(levels.names, levels.level, strict=True):
            assert all(mine <= reach for mine, reach in zip(windows[name], levels.reach[level], strict=True))
            assert any(mine > reach for mine, reach in zip(windows[name], levels.reach[level - 1], strict=True))
            assert name in levels.names[levels.span(level - 1, level)]
