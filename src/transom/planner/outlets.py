"""Several plans as one, whose answer is the answers of all."""

from __future__ import annotations

from collections.abc import Sequence

from transom.plan.algebra import Stream
from transom.plan.outlets import Outlet, Outlets
from transom.planner.fragments import equal_rows_meet
from transom.planner.operator import ANY, Operator, Partitioning, Tactic, column


def together(roots: Sequence[Operator], names: Sequence[str], emits: Sequence[str]) -> Operator:
    """One plan; answer i is in its form, and known by its number. Queries stay the same by their names."""
    asked = zip(roots, names, emits, strict=True)
    outlets = [_outlet(root, name, number, emit) for number, (root, name, emit) in enumerate(asked)]
    node = Outlets(tuple(outlet.node for outlet in outlets if isinstance(outlet.node, Stream)))
    return Operator(node, Tactic("answers", "nothing"), tuple(outlets), None, (ANY,) * len(outlets))


def _outlet(root: Operator, name: str, number: int, emit: str) -> Operator:
    emit = "stream" if isinstance(root.node, Stream) else emit
    needs = ANY
    if emit == "changes" and not equal_rows_meet(root):
        # What leaves in one bucket and enters in another at once is no change.
        needs = Partitioning("keys", tuple(column(root.schema, i) for i in range(len(root.schema))))
    kept = {"stream": "nothing", "lifetimes": "the rows whose end is open"}
    tactic = Tactic(emit, kept.get(emit, "each distinct row alive once, two numbers per row alive"))
    return Operator(Outlet(root.node, name, number, emit), tactic, (root,), None, (needs,))
