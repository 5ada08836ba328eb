"""Rows with and without a partner under negative tuples, by hand; whole queries are held to the reference."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.kernels.negative.changelogs import ChangelogRelation, SteppedChangelog
from tests.kernels.stepping import Life, snapshot
from transom.kernels.negative.join import NegativeJoinKernel
from transom.kernels.negative.outer_join import NegativeOuterJoinKernel
from transom.plan.expression import ColumnRef

TYPES = (pa.int64(), pa.float64())


def kernel(kind: str) -> NegativeOuterJoinKernel:
    key = ColumnRef(0, TYPES[0], "k")
    both = pa.schema([(f"c{i}", type_) for i, type_ in enumerate(TYPES * 2)])
    answer = both if kind == "left" else pa.schema([both.field(0), both.field(1)])
    return NegativeOuterJoinKernel(kind, NegativeJoinKernel("lazy_hash", (key,), (key,), None, both, 2), answer)


@pytest.mark.parametrize("kind", ["left", "anti"])
def test_zeros_without_a_partner_are_shown_with_their_signs(kind: str) -> None:
    left: list[Life] = [((1, 0.0), 1, 9), ((1, -0.0), 2, 6)]
    stepped = SteppedChangelog(kernel(kind))
    stepped.feed([ChangelogRelation(left, TYPES), ChangelogRelation([], TYPES)], [3, 7, 12])
    nulls = (None, None) if kind == "left" else ()
    shown: list[Life] = [((*values, *nulls), ta, te) for values, ta, te in left]
    for instant in range(12):
        assert stepped.snapshot(instant) == snapshot(shown, instant)
