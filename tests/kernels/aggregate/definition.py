"""Random rows to aggregate, the calls, and what they are by definition."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.kernels.stepping import Life, Values
from transom.core.time import FOREVER
from transom.kernels.aggregate.aggregate import AggregateSpec
from transom.runtimes.reference.exact import exact_quantile, exact_sum, exact_variance
from transom.runtimes.reference.history import grouped as one_of_equals
from transom.runtimes.reference.history import value_order

LONG = "more than sixteen bytes, "
TYPES = (pa.string(), pa.int64(), pa.float64(), pa.decimal128(38, 2), pa.string())
POOLS: tuple[tuple[Any, ...], ...] = (
    ("g", "h", None),
    (2**63 - 1, -(2**63), 3, 4, None),
    (0.1, 1e16, -1e16, 3e-310, math.nan, math.inf, -0.0, 0.0, None),
    (Decimal("0.01"), Decimal("-2.50"), Decimal("1e33"), None),
    (LONG + "a", LONG + "b", LONG, "short", "short\0", "", None),
)
WIDE = pa.decimal128(38, 0)
Calls = tuple[tuple[AggregateSpec, pa.DataType], ...]
CALLS: Calls = (
    (AggregateSpec("count", None, False), pa.int64()),
    (AggregateSpec("count", 4, False), pa.int64()),
    (AggregateSpec("count", 2, True), pa.int64()),
    (AggregateSpec("sum", 1, False), WIDE),
    (AggregateSpec("sum", 1, True), WIDE),
    (AggregateSpec("avg", 1, False), pa.float64()),
    (AggregateSpec("sum", 2, False), pa.float64()),
    (AggregateSpec("sum", 2, True), pa.float64()),
    (AggregateSpec("sum", 3, False), TYPES[3]),
    (AggregateSpec("avg", 3, True), pa.float64()),
    (AggregateSpec("var_pop", 2, False), pa.float64()),
    (AggregateSpec("var_samp", 3, True), pa.float64()),
    (AggregateSpec("var_samp", 1, False), pa.float64()),
    (AggregateSpec("quantile_cont", 2, False, fraction=(1, 2)), pa.float64()),
    (AggregateSpec("quantile_cont", 2, False, fraction=(95, 100)), pa.float64()),
    (AggregateSpec("quantile_disc", 3, True, fraction=(1, 3)), TYPES[3]),
    (AggregateSpec("min", 2, False), TYPES[2]),
    (AggregateSpec("max", 3, False), TYPES[3]),
    (AggregateSpec("min", 4, False), TYPES[4]),
    (AggregateSpec("max", 4, True), TYPES[4]),
    (AggregateSpec("quantile_disc", 4, False, fraction=(2, 3)), TYPES[4]),
    (AggregateSpec("quantile_disc", 4, True, fraction=(1, 2)), TYPES[4]),
)
LAST = 40


def schema(grouped: bool, calls: Calls) -> pa.Schema:
    fields = [("g", TYPES[0])] if grouped else []
    return pa.schema(fields + [(f"c{i}", type_) for i, (_, type_) in enumerate(calls)])


def aggregate(spec: AggregateSpec, rows: list[Values]) -> Any:
    """A call by definition."""
    if spec.argument is None:
        return len(rows)
    values = [row[spec.argument] for row in rows if row[spec.argument] is not None]
    if spec.distinct:
        values = [value for (value,) in {one_of_equals((value,)): None for value in values}]
    if spec.function == "count":
        return len(values)
    if not values:
        return None
    if spec.function in ("min", "max"):
        return (min if spec.function == "min" else max)(values, key=lambda value: value_order((value,)))
    if spec.function == "quantile_cont":
        return exact_quantile(values, *spec.fraction)
    if spec.function == "quantile_disc":
        part, whole = spec.fraction
        ordered = sorted(values, key=lambda value: value_order((value,)))
        return ordered[max(1, -(-len(ordered) * part // whole)) - 1]
    if spec.function.startswith("var"):
        exact: Any = values if isinstance(values[0], float) else list(map(str, values))
        return exact_variance(exact, spec.function == "var_samp")
    total = exact_sum(values) if isinstance(values[0], float) else sum(map(Fraction, values), Fraction(0))
    if spec.function == "avg":
        return float(total / len(values))
    if isinstance(total, float):
        return total
    return Context(prec=60).divide(Decimal(total.numerator), Decimal(total.denominator))


def by_definition(rows: Counter[Values], grouped: bool, calls: Calls = CALLS) -> Counter[Values]:
    groups: dict[Values, list[Values]] = {} if grouped else {(): []}
    for row in rows.elements():
        groups.setdefault(row[:1] if grouped else (), []).append(row)
    return Counter(one_of_equals((*key, *(aggregate(s, members) for s, _ in calls))) for key, members in groups.items())


@st.composite
def lives(draw: Any) -> list[Life]:
    found: list[Life] = []
    for _ in range(draw(st.integers(0, 14))):
        ta = draw(st.integers(0, 30))
        longer = draw(st.sampled_from([1, 2, 4, 9, None, FOREVER]))
        te = None if longer is None else min(ta + longer, FOREVER)
        found.append((tuple(draw(st.sampled_from(pool)) for pool in POOLS), ta, te))
    return sorted(found, key=lambda life: life[1])


CUTS = st.sets(st.integers(1, LAST - 1), max_size=8).map(lambda cuts: [*sorted(cuts), LAST])
