"""Windows: each kind has one tactic; what it keeps and whether its rows end in the order in which they came."""

from __future__ import annotations

from dataclasses import dataclass

from transom.core.schema import Schema
from transom.core.time import format_duration
from transom.kernels.operator import ANY, SINGLE, Partitioning, Tactic, column
from transom.plan.algebra import WindowSpec


@dataclass(frozen=True)
class WindowChoice:
    tactic: Tactic
    needs: Partitioning
    ends_grow: bool
    open_ends: bool


def choose(spec: WindowSpec, schema: Schema, negative: bool = False) -> WindowChoice:
    """Under negative tuples rows that begin together must end together for their order to outlive an exchange."""
    if spec.rows is None:
        if spec.slide is None:
            return WindowChoice(Tactic("range", "nothing"), ANY, True, False)
        kept = f"the rows of the last {format_duration(spec.slide)}, until they are sampled"
        in_order = not negative or spec.range is None or spec.range % spec.slide == 0
        return WindowChoice(Tactic("slide_range", kept), ANY, in_order, False)
    if spec.slide is not None:
        kept = f"fewer than {spec.slide} rows, and a number for each of {spec.rows + spec.slide} rows"
        return WindowChoice(Tactic("slide_rows", kept), SINGLE, True, True)
    if spec.partition is None:
        more = ", and its time" if spec.range is not None else ""
        return WindowChoice(Tactic("rows", f"a holder for each of {spec.rows} rows{more}"), SINGLE, True, True)
    keys = Partitioning("keys", tuple(column(schema, i) for i in spec.partition))
    kept = f"four numbers for each of {spec.rows} rows of every partition, and the partitions"
    return WindowChoice(Tactic("partition_rows", kept), keys, False, True)
