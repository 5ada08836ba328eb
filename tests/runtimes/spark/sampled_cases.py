"""The conformance cases and the certified ones, and a sample of them in which every kind of plan occurs.

A streaming query takes a second, so the usual run takes a sample of them and the nightly one all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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
OVER: Final = " over "


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
    found = [case for case in (*_conformance(), *_certified()) if case.kinds]
    return found if NIGHTLY else sample(found)


def sample(known: list[Sampled]) -> list[Sampled]:
    """Some in which every kind occurs that occurs in any: the one first that shows most of what is missing.

    Of operators over each other as many as there are: all of them run in partitions, where nothing is different for
    them.
    """
    chosen: list[Sampled] = []
    missing = frozenset().union(*(case.kinds for case in known))
    pairs = frozenset(kind for kind in missing if OVER in kind)
    missing -= pairs
    left = list(known)
    while left and (missing or len(chosen) < SAMPLE):
        best = max(left, key=lambda case: (len(case.kinds & missing), len(case.kinds & pairs), len(case.kinds)))
        left.remove(best)
        chosen.append(best)
        missing -= best.kinds
        pairs -= best.kinds
    return chosen


def _conformance() -> list[Sampled]:
    found = []
    for case in conformance.load():
        catalogue, query = _read(case.cql)
        agrees = _Conformance(case, query)
        found.append(
            Sampled(
                f"{case.file}: {case.title}",
                query,
                catalogue,
                conformance.inputs(case, catalogue),
                agrees,
                _kinds(query, catalogue),
            )
        )
    return found


def _certified() -> list[Sampled]:
    found = []
    for case in certified.load():
        catalogue, query = _read(certified.statements(case))
        agrees = _Certified(case, query)
        found.append(Sampled(case.id, query, catalogue, certified.inputs(case), agrees, _kinds(query, catalogue)))
    return found


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
    shape = [f"{len(layout.fragments)} fragments", f"{layout.stage_count} stages", f"answer {type(query).__name__}"]
    below = [f"{one.kind}{OVER}{child.kind}" for one in operators for child in one.inputs if one.kind != "Project"]
    return frozenset([f"{one.kind} {one.tactic.name}" for one in operators] + shape + below)
