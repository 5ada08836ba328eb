"""Changes told without counting are those that are counted, in the same order."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from transom.core.delta import Delta, no_holders
from transom.core.schema import DOUBLE, INTEGER, VARCHAR, Schema
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.pipeline.direct_changes import AliveRows, DirectChangesEmit
from transom.pipeline.emit import ChangesEmit
from transom.pipeline.memory import state_rows
from transom.pipeline.registry import STATE_CLASSES
from transom.state import codec
from transom.state.holders import HolderPool

SCHEMAS = {
    "numbers": Schema.of(("a", INTEGER), ("b", INTEGER)),
    "texts": Schema.of(("a", VARCHAR), ("b", INTEGER)),
    "floats": Schema.of(
        ("a", DOUBLE),
    ),
}
VALUES = {INTEGER: (0, 1, 2, -5), VARCHAR: ("", "a", "ab", None), DOUBLE: (0.5, -0.0, None, float("nan"))}


def delta(random: Random, schema: Schema, before: int, upto: int) -> Delta:
    count = random.randint(0, 12)
    arrays = [pa.array([random.choice(VALUES[c.type]) for _ in range(count)], c.type) for c in schema]
    ta = np.array([random.randrange(before, upto) for _ in range(count)], dtype=np.int64)
    te = np.array([t + random.randint(1, 9) if random.random() < 0.9 else FOREVER for t in ta], dtype=np.int64)
    return Delta(pa.RecordBatch.from_arrays(arrays, schema=schema.arrow()), ta, te, no_holders(count), upto)


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("seed", range(4))
def test_they_are_what_counting_gives(kind: str, seed: int) -> None:
    random, schema = Random(f"{kind} {seed}"), SCHEMAS[kind]
    direct, counted = DirectChangesEmit(schema), ChangesEmit(schema)
    mine, theirs = direct.start(), counted.start()
    told = 0
    before = 0
    for i in range(60):
        upto = before + random.randint(1, 6) if i < 59 else FOREVER
        rows = delta(random, schema, before, min(upto, before + 6))
        step = Step(before, upto, 0, HolderPool())
        found, expected = direct.write(mine, rows, step), counted.write(theirs, rows, step)
        assert str(found.to_pylist()) == str(expected.to_pylist()) and found.schema == expected.schema
        told += len(found)
        if random.random() < 0.2:
            mine = codec.decode(codec.encode(mine), STATE_CLASSES)
        before = upto
    assert told > 200 and isinstance(mine, AliveRows) and state_rows(mine) == 0
