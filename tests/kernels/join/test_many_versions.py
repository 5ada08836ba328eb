"""Rows that come and go within a step: each is compared with those that are alive when it comes, and with no others."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.kernels.join import pairs
from tests.kernels.stepping import Life, Relation
from transom.kernels.join import join as driver
from transom.kernels.join import lazy_sweep, ring_sweep

KEYS = 4


def versions(count: int, offset: int) -> list[Life]:
    """What an aggregate gives of a few groups: each row of a group ends when the next one begins."""
    return [
        ((i % KEYS, None, i), 10 * i + offset, 10 * (i + KEYS) + offset if i + KEYS < count else None)
        for i in range(count)
    ]


def passing(count: int, offset: int) -> list[Life]:
    """What a short window gives: ends that grow with arrival."""
    return [((i % KEYS, None, i), 10 * i + offset, 10 * (i + KEYS) + offset) for i in range(count)]


def visits_of(tactic: str, lives: Any, count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many rows are looked at for two relations of so many rows in one step; what is found is checked."""
    seen = 0
    module: ModuleType = lazy_sweep
    name, argument, visits = "sweep", 4, lazy_sweep.VISITS
    if tactic == "ring_hash":
        module, name, argument, visits = ring_sweep, "meet", 2, ring_sweep.LOOKED_AT
    compiled = getattr(module, name)

    def counting(*arguments: Any) -> Any:
        nonlocal seen
        before = int(arguments[argument][visits])
        found = compiled(*arguments)
        seen += int(arguments[argument][visits]) - before
        return found

    monkeypatch.setattr(module, name, counting)
    types = pairs.types_of("integer")
    left, right = (Relation(lives(count, offset), types) for offset in (0, 3))
    stepped = pairs.joined(pairs.join("integer", tactic), left, right, [10 * count + 100])
    monkeypatch.setattr(module, name, compiled)
    if count < 500:
        assert stepped.all_lives() == pairs.by_definition("integer", left.lives, right.lives)
    assert stepped.state.open_pairs.slots.in_use == len(stepped.open)
    return seen


@pytest.mark.parametrize(
    ("tactic", "lives"), [("lazy_hash", versions), ("nested_loop", versions), ("ring_hash", passing)]
)
def test_the_work_of_a_step_grows_as_its_rows_do(tactic: str, lives: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (visits_of(tactic, lives, count, monkeypatch) for count in (250, 1_000))
    assert few >= 250 and many <= 4.5 * few
    # Each row meets the one of its key that is alive, or, in one chain, those of all keys, and passes what has ended.
    assert many <= 2 * 1_000 * (3 if tactic != "nested_loop" else KEYS + 3)


@pytest.mark.parametrize("block", [1, 5])
def test_a_block_of_pairs_may_end_anywhere(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "BLOCK", block)
    types = pairs.types_of("integer")
    left, right = (Relation(versions(60, offset), types) for offset in (0, 3))
    stepped = pairs.joined(pairs.join("integer", "lazy_hash"), left, right, [700])
    assert stepped.all_lives() == pairs.by_definition("integer", left.lives, right.lives)


@pytest.mark.parametrize("restart", [False, True])
def test_a_row_that_was_passed_after_its_end_leaves_once(restart: bool) -> None:
    """Chains stay whole over many steps, in each of which rows come and go."""
    types = pairs.types_of("integer")
    left, right = (Relation(versions(90, offset), types) for offset in (0, 3))
    stepped = pairs.joined(pairs.join("integer", "lazy_hash"), left, right, [*range(70, 1_000, 70), 1_100], restart)
    assert stepped.all_lives() == pairs.by_definition("integer", left.lives, right.lives)
    assert stepped.state.left.alive == stepped.state.right.alive == KEYS
