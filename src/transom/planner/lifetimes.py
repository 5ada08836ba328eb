"""How lifetimes are told (paper 1): directly, a row once with its end or a holder for it; or by negative tuples, twice.

Any query can run either way, and gives the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from transom.kernels.operator import Operator
from transom.plan.algebra import Distinct, SetOperation, ToStream, Window


@dataclass(frozen=True)
class Method:
    """A method, what it costs, and why the other one does not run."""

    name: str
    costs: str
    refused: tuple[str, str]


_COSTS: Final = {
    "direct": "a row passes every operator once; an open end is a holder of 8 bytes",
    "negative": "a row passes every operator twice, when it arrives and when it departs; windows keep whole rows",
}
_OTHER: Final = {"direct": "negative", "negative": "direct"}


def method_of(asked: str) -> Method:
    """What `SET lifetimes` asks for; `auto` is direct, which visits no row more often than negative tuples do."""
    name = "direct" if asked == "auto" else asked
    other = _OTHER[name]
    reason = "a row would pass every operator twice" if asked == "auto" else "not asked for"
    return Method(name, _COSTS[name], (other, reason))


def with_negative_tuples(root: Operator) -> Operator:
    """The same plan, run by negative tuples: who keeps what is another matter then."""
    made: dict[int, Operator] = {}
    for operator in root.walk():
        inputs = tuple(made[id(child)] for child in operator.inputs)
        tactic = replace(operator.tactic, keeps=_kept(operator))
        if isinstance(operator.node, ToStream):
            tactic = replace(tactic, costs="a hash look-up a row")
        made[id(operator)] = replace(operator, inputs=inputs, tactic=tactic, negative=True, open_ends=False)
    return made[id(root)]


def _kept(operator: Operator) -> str:
    tactic = operator.tactic
    if isinstance(operator.node, Window):
        spec = operator.node.spec
        if spec.rows is None and (spec.range is None and not spec.now):
            return "nothing"
        whole = "the rows of the window, whole"
        return whole if tactic.name in ("range", "rows") else f"{tactic.keeps}; {whole}"
    if tactic.name in ("changes_table", "upsert_table"):
        return f"{tactic.keeps}, whole"
    if tactic.name == "sliding":
        return "totals per group; for MIN and MAX the arguments of each row alive"
    if isinstance(operator.node, Distinct | SetOperation) and tactic.name == "counting":
        return "each distinct row alive once, with its counts"
    if tactic.name in ("lazy_hash", "nested_loop"):
        return "each distinct row alive of both sides once, with its count"
    if tactic.name == "ring_hash":
        return "the rows alive of both sides"
    if tactic.name in ("istream", "dstream", "rstream"):
        return "each distinct row alive once, with its count"
    return tactic.keeps
