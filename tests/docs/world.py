"""The blocks of a section, run one after the other.

| block | what it is |
| --- | --- |
| `cql` | statements, bound and planned in order; a query among them must be answered by what follows |
| `stream NAME`, `table NAME` | the rows of an input, as in tests/conformance; they hold until others are given |
| `result changes`, `snapshots`, `stream`, `ledger` | what the query must give on all runtimes, by day on some of them |
| `error` | the message of the `cql` block before, word for word |
| `text timeline [cut ..]` | a figure of the inputs and the answer, made by `python -m tests.docs.remake` |
| `text arrivals [NAME ..]` | what happens as the rows arrive, in that order of inputs; made by the same command |
| `text plan` | what EXPLAIN prints; made by the same command |
| `file NAME`, `console`, `python` | run by `programs.py` |
| `sql flink`, `sql spark` | the same for others, to compare; nobody runs it |
| `text typed` | what a person types that installs something or does not end; nobody runs it |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.conformance import conformance
from tests.docs.arrivals import arrivals
from tests.docs.pages import Block, Page, PageError, Section
from tests.docs.timeline import POINT, SPAN, Group, Mark, draw, label
from tests.profile import in_turn
from tests.run_locally import Answer, run_locally
from tests.runtimes_under_test import RUNTIMES
from transom.core.errors import TransomError
from transom.core.time import from_datetime
from transom.plan.algebra import Node, Stream
from transom.plan.catalogue import (
    Catalogue,
    ExplainStatement,
    InsertStatement,
    QueryStatement,
    StreamDefinition,
    TableDefinition,
)
from transom.planner.explain import explain_text
from transom.program.planned import Planned, read_program
from transom.runtimes.reference.history import Row, difference
from transom.runtimes.reference.scans import scans

PROGRAMS: Final = ("file", "console", "python")
Made = Callable[[Block, str], None]


@dataclass
class AwaitedQuery:
    """A query that waits for its answer."""

    planned: Planned
    block: Block
    answered: bool = False

    @property
    def query(self) -> Node:
        statement = self.planned.statement
        assert isinstance(statement, QueryStatement | InsertStatement | ExplainStatement)
        return statement.query


@dataclass
class World:
    """What a page has said so far. `made` takes the text of every figure."""

    page: str
    made: Made
    catalogue: Catalogue = field(default_factory=Catalogue)
    rows: dict[str, Block] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)
    requested: AwaitedQuery | None = None
    error: TransomError | None = None

    def branch(self) -> World:
        """Another world that begins with what this one knows."""
        catalogue = self.catalogue
        copied = Catalogue(dict(catalogue.relations), dict(catalogue.sinks), dict(catalogue.options))
        return World(self.page, self.made, copied, dict(self.rows), self.used)

    def run(self, section: Section) -> None:
        for block in section.blocks:
            self._run(block)
        self._settle()

    def _run(self, block: Block) -> None:
        match block.words:
            case ("cql",):
                self._settle()
                self._read(block)
            case ("stream" | "table", name):
                self._define(name, block)
            case ("result", ("changes" | "snapshots" | "stream" | "ledger") as what):
                self._compare(what, block)
            case ("error",):
                self._fail(block)
            case ("text", "timeline", *words):
                self.made(block, self._timeline(block, words))
            case ("text", "arrivals", *names):
                self.made(block, self._arrivals(block, names))
            case ("text", "plan"):
                self.made(block, self._plan(block))
            case ("sql", "flink" | "spark") | ("text", "typed"):
                pass
            case (kind, *_) if kind in PROGRAMS:
                pass
            case _:
                raise self._wrong(block, f"nobody runs a block '{' '.join(block.words)}'")

    def _wrong(self, block: Block, what: str) -> PageError:
        return PageError(f"{self.page}:{block.line}: {what}")

    # --- statements --------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Nothing may be left open when something new begins."""
        if self.error is not None:
            raise self.error
        if self.requested is not None and not self.requested.answered:
            raise self._wrong(self.requested.block, "the page does not say what the query gives")
        self.requested = None

    def _read(self, block: Block) -> None:
        try:
            planned = read_program(block.text, self.catalogue)
        except TransomError as error:
            self.error = error
            return
        queries = [query for query in planned if query.root is not None]
        if len(queries) > 1:
            raise self._wrong(block, "one query a block, so that it is clear which one is answered")
        if queries:
            self.requested = AwaitedQuery(queries[0], block)

    def _fail(self, block: Block) -> None:
        if self.error is None:
            raise self._wrong(block, "nothing has failed")
        if str(self.error) != block.text.rstrip("\n"):
            raise self._wrong(block, f"the message is another one:\n{self.error}")
        self.error = None

    def _define(self, name: str, block: Block) -> None:
        if name.lower() not in self.catalogue.relations:
            raise self._wrong(block, f"'{name}' is not declared")
        self.rows[name.lower()] = block

    # --- answers -----------------------------------------------------------------------------------------------------

    def _answer(self, block: Block) -> AwaitedQuery:
        if self.error is not None:
            raise self.error
        if self.requested is None:
            raise self._wrong(block, "there is no query above it")
        self.requested.answered = True
        return self.requested

    def _inputs(self, requested: AwaitedQuery, block: Block) -> dict[str, list[Row]]:
        """The rows of the inputs that the query reads; each must have been given."""
        names = dict.fromkeys(scan.name.lower() for scan in scans(requested.query))
        missing = [name for name in names if name not in self.rows]
        if missing:
            raise self._wrong(block, f"the page gives no rows of {', '.join(missing)}")
        self.used.update(self.rows[name].line for name in names)
        given = [conformance.Block(self.rows[name].kind, name, self.rows[name].text) for name in names]
        return conformance.inputs(conformance.Case(self.page, "", None, "", tuple(given)), requested.planned.catalogue)

    def _compare(self, what: str, block: Block) -> None:
        requested = self._answer(block)
        rows = self._inputs(requested, block)
        expected = conformance.Block("expect", what, block.text)
        case = conformance.Case(self.page, "", None, "", (expected,))
        for name in _runtimes(block.line):
            answer = RUNTIMES[name](requested.query, requested.planned.catalogue, rows)
            reported = conformance.disagreement(case, requested.query.schema, answer)
            if reported is not None:
                raise self._wrong(block, f"(first: the page, second: {name})\n{reported}")

    # --- figures -----------------------------------------------------------------------------------------------------

    def _plan(self, block: Block) -> str:
        requested = self._answer(block)
        if not isinstance(requested.planned.statement, ExplainStatement):
            raise self._wrong(block, "the query above it does not say EXPLAIN")
        assert requested.planned.root is not None
        return explain_text(requested.planned.root)

    def _timeline(self, block: Block, words: list[str]) -> str:
        requested = self._answer(block)
        if words and words[0] != "cut":
            raise self._wrong(block, "write timeline, or timeline cut and instants")
        rows = self._inputs(requested, block)
        self._agree(requested, rows, block)
        groups = [self._input_group(name, rows[name]) for name in rows]
        groups.append(Group("answer", tuple(_answer_marks(requested, rows))))
        cuts = [conformance.instant(word) for word in words[1:]]
        return draw([group for group in groups if group.marks], cuts)

    def _agree(self, requested: AwaitedQuery, rows: dict[str, list[Row]], block: Block) -> None:
        """What is drawn is what the definition says."""
        answers = {
            name: runtime(requested.query, requested.planned.catalogue, rows) for name, runtime in RUNTIMES.items()
        }
        for name, answer in answers.items():
            reported = difference(answers["reference"], answer)
            if reported is not None:
                raise self._wrong(block, f"(first: the reference, second: {name})\n{reported}")

    def _input_group(self, name: str, rows: list[Row]) -> Group:
        definition = self.catalogue.relations[name]
        assert isinstance(definition, StreamDefinition | TableDefinition)
        if definition.time is None:
            return Group(definition.name, ())
        at = definition.columns.names.index(definition.time.column)
        marks = [
            Mark(label([*row[:at], *row[at + 1 :]]), from_datetime(row[at]), None, POINT)
            for row in rows
            if row[at] is not None
        ]
        return Group(definition.name, tuple(marks))

    def _arrivals(self, block: Block, order: list[str]) -> str:
        requested = self._answer(block)
        return arrivals(requested.query, requested.planned.catalogue, self._inputs(requested, block), order)


def _runtimes(number: int) -> list[str]:
    """One process in one batch; by day the definition and the others take turns."""
    reference, local, *others = RUNTIMES
    return [local, *in_turn([reference, *others], number)]


def _answer_marks(requested: AwaitedQuery, rows: dict[str, list[Any]]) -> list[Mark]:
    answers: list[Answer] = []
    run_locally(
        requested.query,
        requested.planned.catalogue,
        rows,
        emit="lifetimes",
        watch=lambda _, answer: answers.append(answer),
    )
    values = answers[-1].values if answers else []
    if isinstance(requested.query, Stream):
        return [Mark(label(row), from_datetime(at), None, POINT) for at, *row in values]
    marks = [
        Mark(label(row), from_datetime(ta), None if te is None else from_datetime(te), SPAN) for *row, ta, te in values
    ]
    return sorted(marks, key=lambda mark: (mark.begin, mark.label))


def run_page(page: Page, made: Made) -> None:
    """All sections of a page, each in a world that knows the preamble."""
    world = World(page.name, made)
    world.run(page.preamble)
    for section in page.sections[1:]:
        world.branch().run(section)
    for block in page.blocks:
        if block.kind in ("stream", "table") and block.line not in world.used:
            raise PageError(f"{page.name}:{block.line}: no query of the page reads these rows")
