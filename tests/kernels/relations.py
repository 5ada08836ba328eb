"""Random relations of a few values, with open ends and rows that follow on one another."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.kernels.stepping import Life, Relation
from transom.core.time import FOREVER

TYPES = (pa.string(), pa.float64())
SCHEMA = pa.schema([("c0", TYPES[0]), ("c1", TYPES[1])])
LAST = 30
CUTS = st.sets(st.integers(1, LAST - 1), max_size=8).map(lambda cuts: [*sorted(cuts), LAST])

VALUES = st.tuples(
    st.sampled_from(["a", "b", None, "a\0", "longer than sixteen bytes"]),
    st.sampled_from([0.0, -0.0, float("nan"), None]),
)


@st.composite
def relations(draw: Any) -> Relation:
    lives: list[Life] = []
    for _ in range(draw(st.integers(0, 10))):
        values = draw(VALUES)
        ta = draw(st.integers(0, 20))
        longer = draw(st.sampled_from([1, 2, 3, 6, None, FOREVER]))
        te = None if longer is None else min(ta + longer, FOREVER)
        lives.append((values, ta, te))
        if te is not None and te < LAST and draw(st.booleans()):
            lives.append((values, te, te + 2))  # enters when the other leaves
    opened = draw(st.frozensets(st.integers(0, 20)))
    return Relation(lives, TYPES, opened)
