"""A step in which many rows come and go is taken in slices, and is one step to everybody else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from transom.core.delta import NO_OPEN_ID, Delta, Ends
from transom.core.time import FOREVER
from transom.kernels import shorter_steps
from transom.kernels.kernel import Step
from transom.kernels.shorter_steps import in_slices
from transom.state.open_ids import OpenIdPool


def delta(ta: list[int], te: list[int], frontier: int, ends: Ends | None = None) -> Delta:
    values = pa.record_batch({"t": pa.array(ta, pa.int64())})
    return Delta(values, np.array(ta), np.array(te), np.full(len(ta), NO_OPEN_ID), frontier, ends or Ends())


def test_the_rows_that_are_stepped_together_are_few_however_many_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shorter_steps, "SLICE", 10)
    seen: list[tuple[int, int, int]] = []

    def one(state: None, inputs: tuple[Delta, ...], step: Step) -> Delta:
        for given in inputs:
            assert all(step.before <= t < step.frontier for t in given.ta) and given.frontier == step.frontier
            assert given.values.column(0).to_pylist() == given.ta.tolist()
            assert all(te < step.frontier for te in given.ends.arrays()[1])
        seen.append((step.before, step.frontier, sum(map(len, inputs))))
        return inputs[0]

    ta = [(7 * i) % 100 for i in range(100)]  # in any order
    ends = Ends.of(np.array([4, 5]), np.array([90, 3]))
    inputs = (delta(ta, [t + 2 for t in ta], 200, ends), delta(sorted(ta), [FOREVER] * 100, 200))
    out = in_slices(one, None, inputs, Step(0, 200, 0, OpenIdPool()))
    assert [before for before, *_ in seen] == [0, *(frontier for _, frontier, _ in seen[:-1])] and seen[-1][1] == 200
    assert sum(rows for *_, rows in seen) == 200 and max(rows for *_, rows in seen) <= 11
    assert out.ta.tolist() == list(range(100)) and out.frontier == 200
    assert [part.tolist() for part in out.ends.arrays()] == [[5, 4], [3, 90]]


def test_a_step_whose_rows_stay_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shorter_steps, "SLICE", 10)
    given = delta(list(range(100)), [FOREVER] * 100, 200)
    assert in_slices(lambda state, inputs, step: inputs[0], None, (given,), Step(0, 200, 0, OpenIdPool())) is given


def test_a_row_that_ends_in_a_later_slice_is_given_with_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that turns out to be a ghost is not given; ends of rows from before stay."""
    monkeypatch.setattr(shorter_steps, "SLICE", 1)
    open_ids = OpenIdPool()
    earlier = open_ids.take(1)
    taken: list[Any] = []

    def one(state: None, inputs: tuple[Delta, ...], step: Step) -> Delta:
        ends = Ends()
        if not taken:
            taken.append(open_ids.take(3))
            ends = open_ids.close(earlier, np.array([1]))
            return Delta(pa.record_batch({"x": [1, 2, 3]}), np.array([1, 1, 1]), np.full(3, FOREVER), taken[0], 2, ends)
        if len(taken) == 1:
            taken.append(None)
            ends = open_ids.close(taken[0][:2], np.array([4, 1]))
        none = np.empty(0, np.int64)
        return Delta(pa.record_batch({"x": pa.array([], pa.int64())}), none, none, none, step.frontier, ends)

    out = in_slices(one, None, (delta([1, 3, 5], [2, 4, 6], 9),), Step(0, 9, 0, open_ids))
    assert out.values.column(0).to_pylist() == [1, 3] and out.te.tolist() == [4, FOREVER]
    assert out.open_id.tolist() == [NO_OPEN_ID, taken[0][2]]
    assert [part.tolist() for part in out.ends.arrays()] == [earlier.tolist(), [1]]
