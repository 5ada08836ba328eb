"""A text of statements, bound, checked and planned: what is wrong with it is found before anything starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType

from transom.connectors.answer_view import AnswerView
from transom.connectors.open import check_sink, open_source
from transom.core.errors import QueryError, TransomError
from transom.core.location import absolute_path, storage_path
from transom.core.secrets import taken
from transom.core.values import Value
from transom.cql.statements import statements_in_place
from transom.kernels.operator import Operator
from transom.plan.catalogue import (
    Catalogue,
    CreateStatement,
    DropStatement,
    ExplainStatement,
    InsertStatement,
    QueryStatement,
    SetStatement,
    ShowStatement,
    SinkDefinition,
    Statement,
    StreamDefinition,
    TableDefinition,
    ViewDefinition,
)
from transom.plan.options import check_spill
from transom.plan.reads import reads
from transom.planner.growth import StateGrowth, growing
from transom.planner.multiway_choice import MultiwayDecision
from transom.planner.plan import plan_and_decisions
from transom.planner.statistics import DeclaredStatistics, Statistics
from transom.program.arguments import require_text
from transom.program.taken_columns import NONE, TakenColumns, looking


@dataclass(frozen=True)
class Planned:
    """A statement; if it holds a query, its plan and where the answer goes (None: to the caller).

    `catalogue` has the names and options at this place in the text. `decisions` are those of the plan that rest on
    estimates, which may be others elsewhere or tomorrow.
    """

    statement: Statement
    catalogue: Catalogue
    root: Operator | None = None
    sink: SinkDefinition | None = None
    decisions: tuple[MultiwayDecision, ...] = ()

    @property
    def standing(self) -> bool:
        """Whether it is a query to be run, not one to be explained."""
        return isinstance(self.statement, InsertStatement | QueryStatement)

    def view(self) -> AnswerView:
        """What the caller sees of the answer."""
        assert isinstance(self.statement, QueryStatement)
        return AnswerView(self.statement.order, self.statement.limit)

    @property
    def growing(self) -> list[StateGrowth]:
        """What would keep more and more for as long as input comes."""
        return [] if self.root is None else growing(self.root, "changes" if self.sink is None else self.sink.emit)

    def decided(self, decisions: tuple[MultiwayDecision, ...]) -> Planned:
        """The query planned as it was when these were its decisions."""
        if decisions == self.decisions:
            return self
        assert isinstance(self.statement, InsertStatement | QueryStatement | ExplainStatement)
        root, decisions = plan_and_decisions(self.statement.query, self.catalogue, decided=decisions)
        return replace(self, root=root, decisions=decisions)


StatisticsOf = Callable[[Catalogue], Statistics]
"""Makes the statistics of queries over a catalogue."""


def read_program(
    text: str,
    catalogue: Catalogue,
    fixed: Mapping[str, object] | None = None,
    statistics_of: StatisticsOf = DeclaredStatistics,
    parameters: Mapping[str, Value] = MappingProxyType({}),
    one_query: bool = False,
    kept: Mapping[str, TakenColumns] = NONE,
) -> list[Planned]:
    """The statements of a text. The catalogue learns their names and options if nothing is wrong with any of them.

    Options in `fixed` have the last word over those that the text sets. With `one_query`, exactly one of the statements
    must be a query to be run. `kept` are columns that a checkpoint knows, which are not taken from files again.
    """
    require_text(text, "a query", QueryError)
    options = dict(catalogue.options)
    changed = Catalogue(
        dict(catalogue.relations),
        dict(catalogue.sinks),
        dict(options),
        catalogue.within,
        looking(catalogue.within, kept),
        catalogue.functions,
    )
    planned: list[Planned] = []
    for statement, names in statements_in_place(text, changed, parameters):
        if isinstance(statement, SetStatement):
            options[statement.option] = statement.value
        here = Catalogue(names.relations, names.sinks, {**options, **(fixed or {})}, catalogue.within)
        if isinstance(statement, ShowStatement):  # the catalogue of a query travels, and its plan has what it calls
            here = replace(here, functions=catalogue.functions)
        with _located(statement, text):
            _reject_taken(statement, planned)
            planned.append(_plan_statement(statement, here, statistics_of))
    _check_paths(planned, text)
    queries = sum(query.standing for query in planned)
    if one_query and queries != 1:
        raise QueryError(
            f"one query is expected, and the text has {queries}",
            remedy="write SELECT .. FROM .., or execute() a text of other statements",
        )
    catalogue.relations, catalogue.sinks, catalogue.options = changed.relations, changed.sinks, changed.options
    return planned


def _plan_statement(statement: Statement, catalogue: Catalogue, statistics_of: StatisticsOf) -> Planned:
    check_spill(catalogue)
    match statement:
        case CreateStatement(definition=StreamDefinition() | TableDefinition() as definition):
            open_source(definition, catalogue.within)
        case CreateStatement(definition=SinkDefinition() as definition):
            check_sink(definition, catalogue.within)
        case InsertStatement() | QueryStatement() | ExplainStatement():
            root, decisions = plan_and_decisions(statement.query, catalogue, statistics_of(catalogue))
            sink = catalogue.sinks[statement.sink] if isinstance(statement, InsertStatement) else None
            return Planned(statement, catalogue, root, sink, decisions)
    return Planned(statement, catalogue)


def _reject_taken(statement: Statement, before: list[Planned]) -> None:
    """Reject a statement that takes an input from a query before it: all run when the whole text is read."""
    if not isinstance(statement, CreateStatement | DropStatement) or statement.definition is None:
        return
    name = statement.definition.name
    if any(
        reads(earlier.statement.query, name.lower()) for earlier in before if isinstance(earlier.statement, _STANDING)
    ):
        raise QueryError(
            f"a query before it reads '{name}', and runs when all of the text is read",
            remedy="write the two into texts of their own",
        )


_STANDING = InsertStatement | QueryStatement | ExplainStatement


def _check_paths(planned: list[Planned], text: str) -> None:
    """No two queries write to the same place, and none to a place that is read."""
    taken: dict[str, str] = {}
    read = {path_of(relation): name for query in planned[-1:] for name, relation in query.catalogue.relations.items()}
    for query in planned:
        if query.sink is None or not query.standing:
            continue
        path = path_of(query.sink) or query.sink.name.lower()
        with _located(query.statement, text):
            if path in taken:
                raise QueryError(
                    f"the sink '{query.sink.name}' would be written by two queries",
                    remedy="give each query a sink with a path of its own, or make one query of them with UNION ALL",
                )
            reader = read.get(path) or read.get(os.path.dirname(path))
            if reader is not None:
                raise QueryError(
                    f"the sink '{query.sink.name}' would be written where '{reader}' is read",
                    remedy="give the sink another path",
                )
        taken[path] = query.sink.name


def path_of(definition: StreamDefinition | TableDefinition | ViewDefinition | SinkDefinition) -> str | None:
    """Where a definition reads or writes files, if it does."""
    path = None if isinstance(definition, ViewDefinition) else definition.properties.get("path")
    return None if path is None else absolute_path(storage_path(taken(path) or path))


@contextmanager
def _located(statement: Statement, text: str) -> Iterator[None]:
    """Errors that know no place of their own are placed at the statement."""
    try:
        yield
    except TransomError as error:
        if error.span is None:
            # At its first word: a line under all of it would point at nothing.
            error.span, error.text = replace(statement.span, length=len(statement.text.split(maxsplit=1)[0])), text
        raise
