"""EXPLAIN: a plan as a tree for people and as JSON for programs; with what a run measured, EXPLAIN ANALYZE.

Operators are numbered children first. One that is used in several places runs once and is described once; elsewhere
only its number stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from transom.core.schema import sql_name
from transom.kernels.all_tactics import TACTICS
from transom.kernels.operator import Operator
from transom.plan.catalogue import Statement
from transom.plan.python_function import functions_in
from transom.planner.fragments import Exchange, Fragment, fragments
from transom.planner.lifetimes import method_of
from transom.planner.origin import excerpts_json


@dataclass(frozen=True)
class Measured:
    """What an operator did in a run: rows in and out, ends of earlier rows that it emitted, the most it kept, its time.

    `notes` are what only this kind of operator has to say.
    """

    rows_in: int
    rows_out: int
    ends: int
    state_bytes: int
    seconds: float
    notes: tuple[str, ...] = ()


def explain_text(root: Operator, measured: Sequence[Measured] | None = None) -> str:
    """The plan as a tree; `measured` in the order of `root.walk()`."""
    return _Plan(root, measured).text()


def explain_json(
    root: Operator, measured: Sequence[Measured] | None = None, statement: Statement | None = None
) -> dict[str, Any]:
    """The plan as JSON can hold it: operators and fragments, by number. With the `statement` each operator says what of
    its text it comes from."""
    return _Plan(root, measured, statement).json()


_TITLES: Final = {node.__name__: tactic.title for tactic in TACTICS for node in tactic.nodes}


def title(kind: str, tactic: str) -> str:
    """What an operator is called.

    >>> title("Window", "range"), title("StreamScan", "scan")
    ('window range', 'scan')
    """
    return _TITLES.get(kind, "") + tactic


class _Plan:
    def __init__(self, root: Operator, measured: Sequence[Measured] | None, statement: Statement | None = None) -> None:
        self.root = root
        self.measured = measured
        self.statement = statement
        self.method = method_of("negative" if root.negative else "auto")
        self.operators = list(root.walk())
        self.number = {id(operator): i for i, operator in enumerate(self.operators, 1)}
        self.fragments = fragments(root)
        self.fragment_of = {id(operator): part for part in self.fragments for operator in part.operators}
        uses = [id(child) for operator in self.operators for child in operator.inputs]
        self.functions = functions_in(tuple(operator.node for operator in self.operators))
        self.shared = {operator for operator in uses if uses.count(operator) > 1}

    # --- text --------------------------------------------------------------------------------------------------------

    def text(self) -> str:
        lines: list[str] = []
        self._write(self.root, lines, "", "", set())
        for part in self.fragments:
            lines.append(f"fragment {part.number}, {_spread(part)}: {'; '.join(map(self._exchange, part.exchanges))}")
        other, reason = self.method.not_taken
        lines += [f"lifetimes {self.method.name}: {self.method.costs}", f"   not {other}: {reason}"]
        lines += [f"function {function}: Python, an array at a time" for function in self.functions]
        return "\n".join(lines)

    def _write(self, operator: Operator, lines: list[str], first: str, rest: str, seen: set[int]) -> None:
        number = self.number[id(operator)]
        head = f"{first}#{number} {title(operator.kind, operator.tactic.name)}"
        if id(operator) in seen:
            lines.append(f"{head}: shared, see above")
            return
        seen.add(id(operator))
        lines.append(f"{head}: {operator.tactic.describe(operator)}{' (shared)' * (id(operator) in self.shared)}")
        below = rest + ("│  " if operator.inputs else "   ")
        lines += [below + line for line in self._details(operator)]
        for i, child in enumerate(operator.inputs):
            last = i == len(operator.inputs) - 1
            self._write(child, lines, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "), seen)

    def _details(self, operator: Operator) -> list[str]:
        tactic = operator.tactic
        where = self.fragment_of.get(id(operator))
        index = f"fragment {where.number}" if where is not None else "on the way" if operator.inputs else "source"
        lines = [f"keeps {tactic.keeps}; {tactic.costs}; {index}"]
        lines += [f"not {name}: {reason}" for name, reason in tactic.not_taken]
        if tactic.rests_on:
            lines.append("estimated from " + "; ".join(f"{what} {basis}" for what, basis in tactic.rests_on))
        if self.measured is not None:
            counters = self.measured[self.number[id(operator)] - 1]
            lines.append(
                f"{counters.rows_in:,} rows in, {counters.rows_out:,} out, {counters.ends:,} ends, "
                f"{counters.state_bytes:,} bytes kept, {counters.seconds * 1000:.1f} ms"
            )
            lines += counters.notes
        return lines

    def _exchange(self, exchange: Exchange) -> str:
        origin = exchange.source if exchange.source is not None else f"fragment {exchange.fragment}"
        prefix = "".join(f" through #{self.number[id(operator)]}" for operator in exchange.prefix)
        return f"{origin} {exchange.partitioning}{prefix} into #{self.number[id(exchange.into)]}"

    # --- JSON --------------------------------------------------------------------------------------------------------

    def json(self) -> dict[str, Any]:
        functions = [{"name": function.name, "version": function.version} for function in self.functions]
        return {
            "root": self.number[id(self.root)],
            "columns": [{"name": c.name, "type": sql_name(c.type)} for c in self.root.schema],
            "operators": [self._operator(operator) for operator in self.operators],
            "fragments": [self._fragment(part) for part in self.fragments],
            "lifetimes": {
                "method": self.method.name,
                "costs": self.method.costs,
                "not_taken": [{"method": self.method.not_taken[0], "reason": self.method.not_taken[1]}],
            },
            **({"functions": functions} if functions else {}),
        }

    def _operator(self, operator: Operator) -> dict[str, Any]:
        tactic = operator.tactic
        part = self.fragment_of.get(id(operator))
        description: dict[str, Any] = {
            "number": self.number[id(operator)],
            "operator": operator.kind,
            "tactic": tactic.name,
            "title": title(operator.kind, tactic.name),
            "description": tactic.describe(operator),
            "keeps": tactic.keeps,
            "costs": tactic.costs,
            "not_taken": [{"tactic": name, "reason": reason} for name, reason in tactic.not_taken],
            "inputs": [self.number[id(child)] for child in operator.inputs],
            "shared": id(operator) in self.shared,
            "fragment": None if part is None else part.number,
            "needs": [str(need) for need in operator.needs],
        }
        if self.statement is not None:
            description["written"] = excerpts_json(operator, self.statement)
        if tactic.estimates:
            description["estimates"] = {
                "microseconds a row": {name: round(price, 3) for name, price in tactic.estimates},
                "rests on": dict(tactic.rests_on),
            }
        if self.measured is not None:
            counters = self.measured[self.number[id(operator)] - 1]
            description["measured"] = {
                "rows_in": counters.rows_in,
                "rows_out": counters.rows_out,
                "ends": counters.ends,
                "state_bytes": counters.state_bytes,
                "seconds": counters.seconds,
                **({"notes": list(counters.notes)} if counters.notes else {}),
            }
        return description

    def _fragment(self, part: Fragment) -> dict[str, Any]:
        return {
            "number": part.number,
            "partitioning": str(part.partitioning),
            "operators": [self.number[id(operator)] for operator in part.operators],
            "exchanges": [
                {
                    "source": exchange.source,
                    "fragment": exchange.fragment,
                    "into": self.number[id(exchange.into)],
                    "input": exchange.index,
                    "partitioning": str(exchange.partitioning),
                    "prefix": [self.number[id(operator)] for operator in exchange.prefix],
                }
                for exchange in part.exchanges
            ],
        }


def _spread(part: Fragment) -> str:
    return {"any": "any partition", "single": "one partition"}.get(part.partitioning.kind, str(part.partitioning))
