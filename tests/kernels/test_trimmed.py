"""Memory written without the room that it keeps for more goes on as the memory that it was made of."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from transom.core.delta import NO_OPEN_ID, Delta, Ends
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.kernels.to_stream.to_stream import ToStreamKernel, ToStreamState
from transom.pipeline.registry import STATE_CLASSES
from transom.state import codec
from transom.state.open_ids import OpenIdPool

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])


def delta(random: Random, step: Step, still_open: list[int]) -> Delta:
    """Rows of few values, some of them open, and the ends of some that were."""
    count = random.randrange(40)
    values = pa.RecordBatch.from_arrays(
        [
            pa.array([random.choice([None, 1, 2, 3]) for _ in range(count)], pa.int64()),
            pa.array([random.choice([None, "", "x" * random.randrange(30)]) for _ in range(count)], pa.string()),
        ],
        schema=SCHEMA,
    )
    ta = np.array([random.randrange(step.before, step.frontier) for _ in range(count)], dtype=np.int64)
    te = ta + np.array([random.randrange(1, 30) for _ in range(count)], dtype=np.int64)
    open_id = np.full(count, NO_OPEN_ID, dtype=np.int64)
    closed = [h for h in still_open if random.random() < 0.3]
    still_open[:] = [h for h in still_open if h not in closed]
    ends = (
        step.open_ids.close(np.array(closed, dtype=np.int64), np.full(len(closed), step.frontier - 1))
        if closed
        else Ends()
    )
    opened = np.flatnonzero(np.array([random.random() < 0.3 for _ in range(count)], dtype=np.bool_))
    open_id[opened] = step.open_ids.take(len(opened))
    te[opened] = FOREVER
    still_open += open_id[opened].tolist()
    return Delta(values, ta, te, open_id, step.frontier, ends)


@pytest.mark.parametrize("change", ["istream", "dstream", "changes", "rstream"])
@pytest.mark.parametrize("seed", range(4))
def test_a_saved_stream_of_changes_goes_on_as_it_was(seed: int, change: str) -> None:
    random = Random(seed)
    kernel = ToStreamKernel(change, SCHEMA)
    kept, saved = kernel.start(), kernel.start()
    open_ids = OpenIdPool()
    still_open: list[int] = []
    before = 0
    for _ in range(25):
        step = Step(before, before + random.randrange(1, 20), 0, open_ids)
        rows = delta(random, step, still_open)
        expected, found = kernel.step(kept, (rows,), step), kernel.step(saved, (rows,), step)
        assert found.values.to_pylist() == expected.values.to_pylist() and found.t.tolist() == expected.t.tolist()
        open_ids.finish_step()
        saved = codec.decode(codec.encode(saved), STATE_CLASSES)
        assert isinstance(saved, ToStreamState)
        before = step.frontier


def test_what_is_gone_is_not_written() -> None:
    kernel = ToStreamKernel("istream", SCHEMA)
    state = kernel.start()
    many = pa.RecordBatch.from_arrays([pa.array(range(50_000)), pa.array(["text"] * 50_000)], schema=SCHEMA)
    ta = np.arange(50_000)
    rows = Delta(many, ta, ta + 1, np.full(50_000, NO_OPEN_ID, dtype=np.int64), 60_000)
    kernel.step(state, (rows,), Step(0, 60_000, 0, OpenIdPool()))
    assert codec.saved_bytes(state, whole=True) > 1_000_000
    assert codec.saved_bytes(state) < 10_000 and len(codec.encode(state)) < 20_000
