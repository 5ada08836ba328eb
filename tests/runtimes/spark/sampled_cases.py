"""The conformance cases and the certified ones, and a sample of them in which every kind of plan occurs.

A streaming query takes a second, so the usual run takes a sample of them and the nightly one all. Which ones are in the
sample is kept beside this module: to plan all of them takes seconds in every test process. `make seeds` chooses anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.cases import certified
from tests.conformance import conformance
from tests.profile import NIGHTLY
from transom.core.errors import UnsupportedError
from transom.cql.statements import parse_statements
from transom.pipeline.layout import Layout
from transom.plan.algebra import Node
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.plan import plan
from transom.runtimes.reference.history import History

SAMPLE: Final = 18
KEPT: Final = Path(__file__).with_name("sampled_cases.json")
OVER: Final = " over "
MANY: Final = 3
"""Fragments or stages: with more of them nothing is different."""


@dataclass(frozen=True)
class Sampled:
    """A case, however it is written down. `kinds`: what occurs in its plan."""

    id: str
    query: Node
    catalogue: Catalogue
    inputs: dict[str, list[Any]]
    disagreement: Callable[[History], str | None]
    kinds: frozenset[str] = field(default_factory=frozenset)


def cases() -> list[Sampled]:
    """Those that the engine does not reject; all of them at night, otherwise the sample."""
    return all_cases() if NIGHTLY else kept_sample()


def all_cases() -> list[Sampled]:
    return [case for case in _planned() if case.kinds]


def kept_sample() -> list[Sampled]:
    names: list[str] = json.loads(KEPT.read_text(encoding="utf-8"))
    cases = {case.id: case for case in _planned(frozenset(names)) if case.kinds}
    assert cases.keys() == set(names), f"no such cases: {sorted(set(names) - cases.keys())}; make seeds"
    return [cases[name] for name in names]


def sample(cases: list[Sampled]) -> list[Sampled]:
    """Some in which every kind occurs that occurs in any: the one first that shows most of what is missing.

    Of operators over each other as many as there are: all of them run in partitions, where nothing is different for
    them.
    """
    chosen: list[Sampled] = []
    missing = frozenset().union(*(case.kinds for case in cases))
    pairs = frozenset(kind for kind in missing if OVER in kind)
    missing -= pairs
    left = list(cases)
    while left and (missing or len(chosen) < SAMPLE):
        best = max(left, key=lambda case: (len(case.kinds & missing), len(case.kinds & pairs), len(case.kinds)))
        left.remove(best)
        chosen.append(best)
        missing -= best.kinds
        pairs -= best.kinds
    return chosen


def _planned(names: Container[str] | None = None) -> Iterator[Sampled]:
    """The cases of these names, or all."""
    for case in conformance.load():
        name = f"{case.file}: {case.title}"
        if names is None or name in names:
            catalogue, query = _read(case.cql)
            inputs = conformance.inputs(case, catalogue)
            yield Sampled(name, query, catalogue, inputs, _Conformance(case, query), _kinds(query, catalogue))
    for certain in certified.load():
        if names is None or certain.id in names:
            catalogue, query = _read(certified.statements(certain))
            inputs, agrees = certified.inputs(certain), _Certified(certain, query)
            yield Sampled(certain.id, query, catalogue, inputs, agrees, _kinds(query, catalogue))


@dataclass(frozen=True)
class _Conformance:
    case: conformance.Case
    query: Node

    def __call__(self, answer: History) -> str | None:
        return conformance.disagreement(self.case, self.query.schema, answer)


@dataclass(frozen=True)
class _Certified:
    case: certified.Case
    query: Node

    def __call__(self, answer: History) -> str | None:
        return certified.disagreement(self.case, self.query, answer)


def _read(text: str) -> tuple[Catalogue, Node]:
    catalogue = Catalogue()
    statement = parse_statements(text, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    return catalogue, statement.query


def _kinds(query: Node, catalogue: Catalogue) -> frozenset[str]:
    """Operators with their tactics, and how they are laid out; nothing of a query that is rejected."""
    try:
        root = plan(query, catalogue)
    except UnsupportedError:
        return frozenset()
    layout = Layout(root, catalogue, "changes", 2)
    operators = list(root.walk())
    fragments, stages = (min(count, MANY) for count in (len(layout.fragments), layout.stage_count))
    shape = [f"{fragments} fragments", f"{stages} stages", f"answer {type(query).__name__}"]
    below = [
        f"{operator.kind}{OVER}{child.kind}"
        for operator in operators
        for child in operator.inputs
        if operator.kind != "Project"
    ]
    return frozenset([f"{operator.kind} {operator.tactic.name}" for operator in operators] + shape + below)


if __name__ == "__main__":
    KEPT.write_text(json.dumps([case.id for case in sample(all_cases())], indent=2) + "\n", encoding="utf-8")
