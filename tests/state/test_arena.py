"""State that lies in a mapped file: right after any change, worth nothing while it is used, never shared by two."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from transom.core.errors import CheckpointError
from transom.state.arena import Arena

State = dict[str, Any]


def equal(left: State, right: State) -> bool:
    if left.keys() != right.keys():
        return False
    for name, value in left.items():
        if isinstance(value, np.ndarray):
            if value.shape != right[name].shape or value.dtype != right[name].dtype or not (value == right[name]).all():
                return False
        elif value != right[name]:
            return False
    return True


def copied(state: State) -> State:
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in state.items()}


def changed(random: Random, state: State) -> State:
    """As a kernel changes its state: in place, by a slice, by something new; and things come and go."""
    for name in list(state):
        value = state[name]
        if not isinstance(value, np.ndarray):
            continue
        match random.randrange(6):
            case 0 if value.size:
                value.flat[random.randrange(value.size)] = random.randrange(100)
            case 1:
                state[name] = np.arange(random.choice([0, 1, 100, 30_000]))
            case 2 if value.ndim == 1:
                state[name] = value[len(value) // 3 :]
            case 3:
                state[f"{name[:1]}{random.randrange(1000)}"] = np.full((2, random.randrange(500)), 7, dtype=np.uint8)
            case 4 if len(state) > 3:
                del state[name]
    state["rows"] = pa.record_batch({"a": list(range(random.randrange(4)))})
    state["text"] = "x" * random.randrange(9)
    return state


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_put_is_taken(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    path = str(tmp_path / "folder" / "state")
    state: State = {"a": np.arange(10), "b": np.zeros((3, 4)), "c": np.empty(0, dtype=np.int64)}
    Arena(path, ()).put("0", state)
    expected = copied(state)
    for number in range(60):
        user = Arena(path, ())
        state = user.take(str(number))
        assert state is not None and equal(state, expected)
        state = changed(random, state)
        expected = copied(state)
        user.put(str(number + 1), state)


def test_room_that_nothing_needs_any_more_is_used_again(tmp_path: Path) -> None:
    path = str(tmp_path / "state")
    Arena(path, ()).put("0", {"a": np.zeros(100_000)})
    for number in range(30):
        user = Arena(path, ())
        assert user.take(str(number)) is not None
        user.put(str(number + 1), {"a": np.full(100_000, number)})
    assert os.path.getsize(path) <= 4 << 20


def index(user: Arena, array: Any) -> int:
    """Where an array lies in the file."""
    start: int = np.frombuffer(user._map, dtype=np.uint8).__array_interface__["data"][0]  # type: ignore[arg-type]
    return int(array.__array_interface__["data"][0]) - start


def test_what_is_not_new_stays_where_it_is(tmp_path: Path) -> None:
    path = str(tmp_path / "state")
    Arena(path, ()).put("0", {"large": np.zeros(10_000), "small": np.zeros(3)})
    user = Arena(path, ())
    state = user.take("0")
    at = index(user, state["large"])
    state["large"][7] = 1.0
    state["small"] = np.ones(4)
    user.put("1", state)
    again = Arena(path, ())
    state = again.take("1")
    assert index(again, state["large"]) == at
    assert state["large"][7] == 1.0 and state["small"].tolist() == [1.0] * 4


def test_a_state_in_use_is_worth_nothing_to_others(tmp_path: Path) -> None:
    path = str(tmp_path / "state")
    Arena(path, ()).put("0", {"a": np.arange(3)})
    assert Arena(path, ()).take("another") is None
    first = Arena(path, ())
    assert first.take("0") is not None
    assert Arena(path, ()).take("0") is None  # it is being changed
    del first
    assert Arena(path, ()).take("0") is None  # and was never finished


def test_whoever_was_given_up_writes_where_nobody_looks(tmp_path: Path) -> None:
    path = str(tmp_path / "state")
    Arena(path, ()).put("0", {"a": np.arange(3)})
    given_up = Arena(path, ())
    old = given_up.take("0")
    second = Arena(path, ())
    assert second.take("0") is None
    second.put("1", {"a": np.array([5, 6, 7])})  # made again from the log, in a file of its own
    old["a"][:] = 99
    given_up.put("ghost", old)
    assert Arena(path, ()).take("ghost") is None
    assert Arena(path, ()).take("1")["a"].tolist() == [5, 6, 7]


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, at: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(CheckpointError, match="no room for the working memory") as caught:
        Arena(str(tmp_path / "state"), ()).put("0", {"a": np.arange(3)})
    assert caught.value.remedy is not None and "spark.local.dir" in caught.value.remedy


def test_where_there_is_no_room_another_place_does_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    given = os.posix_fallocate

    def small(file: int, at: int, size: int) -> None:
        if os.readlink(f"/proc/self/fd/{file}").startswith(str(here)) and size > 1 << 20:
            raise OSError(28, "No space left on device")
        given(file, at, size)

    monkeypatch.setattr(os, "posix_fallocate", small)
    arena = Arena(str(here / "state"), (), str(there / "state"))
    arena.put("0", {"a": np.arange(3)})
    assert os.listdir(here) == ["state"] and not there.exists()
    state = arena.take("0")
    state["b"] = np.arange(1 << 18)
    arena.put("1", state)
    assert os.listdir(here) == [] and os.listdir(there) == ["state"]
    other = Arena(str(here / "state"), (), str(there / "state"))
    state = other.take("1")
    assert state["a"].tolist() == [0, 1, 2] and state["b"][-1] == (1 << 18) - 1
    state["b"] = np.arange(2)
    other.put("2", state)
    assert arena.take("2")["b"].tolist() == [0, 1]
