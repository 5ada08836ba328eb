"""How lifetimes are sent (paper 1): directly, a row once with its end or an open row id for it; or by negative
tuples, twice.

Any query can run either way, and gives the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from transom.kernels.operator import Operator


@dataclass(frozen=True)
class LifetimeMethod:
    """A method, what it costs, and why the other one does not run."""

    name: str
    costs: str
    not_taken: tuple[str, str]


_COSTS: Final = {
    "direct": "a row passes every operator once; an open end is an open row id of 8 bytes",
    "negative": "a row passes every operator twice, when it arrives and when it departs; windows keep whole rows",
}
_OTHER: Final = {"direct": "negative", "negative": "direct"}


def method_of(forced: str) -> LifetimeMethod:
    """What `SET lifetimes` asks for; `auto` is direct, which visits no row more often than negative tuples do."""
    name = "direct" if forced == "auto" else forced
    other = _OTHER[name]
    reason = "a row would pass every operator twice" if forced == "auto" else "not requested"
    return LifetimeMethod(name, _COSTS[name], (other, reason))


def with_negative_tuples(root: Operator) -> Operator:
    """The same plan, run by negative tuples: who keeps what is another matter then."""
    made: dict[int, Operator] = {}
    for operator in root.walk():
        inputs = tuple(made[id(child)] for child in operator.inputs)
        tactic = operator.tactic.with_negative_tuples(operator)
        made[id(operator)] = replace(operator, inputs=inputs, tactic=tactic, negative=True, open_ends=False)
    return made[id(root)]
