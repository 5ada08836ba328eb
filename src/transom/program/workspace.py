"""What a session knows, and where its queries run: whoever hosts one, a command line say, works with its parts.

A text of statements is read and planned, and those that are queries become a run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from transom.connectors.screen import Screen
from transom.core.emit_modes import Emit
from transom.core.location import held_path
from transom.core.values import Value
from transom.plan.catalogue import (
    Catalogue,
    CreateStatement,
    DropStatement,
    ExplainStatement,
    ShowStatement,
    StreamDefinition,
    TableDefinition,
)
from transom.planner.statistics import Statistics
from transom.program.checkpoint_folder import taken_columns
from transom.program.clock import Clock
from transom.program.explained import Explained, explained, explained_all
from transom.program.inputs import SessionInputs
from transom.program.planned import Planned, read_program
from transom.program.progress import Listener
from transom.program.query_specs import Answer, SpecBuilder
from transom.program.result import Result, Results
from transom.program.run import EVERY, OnBatch, QueryInRun, Run, RunOptions, Runtime, ending_of, until_full
from transom.program.shown import shown
from transom.program.statistics import sampling
from transom.program.taps import Taps


class Workspace:
    """The names that are declared, the inputs behind them, and the runtime that runs queries over them."""

    def __init__(self, inputs: SessionInputs, runtime: Runtime) -> None:
        self.catalogue: Catalogue = inputs.catalogue
        self.inputs = inputs
        self.runtime = runtime
        self.screen = Screen()
        self.taps = Taps()
        self.listeners: list[Listener] = []

    def begin(self, brief: bool = False) -> None:
        """Start what takes long to start, while the caller goes on. `brief`: it is for a minute or so."""
        self.runtime.begin(brief)

    def statistics(self) -> Callable[[Catalogue], Statistics]:
        """What a planner may ask of the inputs of a catalogue, and of the machine."""
        return sampling(self.inputs.peek, self.runtime.machine)

    def prepare(
        self,
        text: str,
        fixed: Mapping[str, object] | None = None,
        *,
        parameters: Mapping[str, Value] = MappingProxyType({}),
        one_query: bool = False,
        checkpoint: str | None = None,
    ) -> list[Planned]:
        """The statements of a text, planned; the session knows its names then. Options in `fixed` cannot be SET.

        With `one_query`, exactly one of them must be a query. Columns that the text does not declare are those that the
        `checkpoint` knows, or that the files have.
        """
        kept = taken_columns(held_path(checkpoint, self.catalogue.within))
        planned = read_program(text, self.catalogue, fixed, self.statistics(), parameters, one_query, kept)
        for each in planned:
            match each.statement:
                case CreateStatement(definition=StreamDefinition() | TableDefinition() as definition):
                    self.inputs.hold(definition)
                case DropStatement(definition=StreamDefinition() | TableDefinition() as dropped):
                    self.inputs.forget(dropped.name)
        return planned

    def assemble(
        self,
        planned: Sequence[Planned],
        *,
        emit: Emit = "changes",
        follow: bool = False,
        checkpoint: str | None = None,
        end: bool | None = None,
        every: int = EVERY,
        dead_letters: str | None = None,
        keep_dead_letters: bool = True,
        answer: Answer | None = None,
        clock: Clock | None = None,
        on_batch: OnBatch | None = None,
        names: Sequence[str] = (),
    ) -> Run:
        """The standing queries among the statements, ready to run together, from the checkpoint if there is one.

        `follow`, `checkpoint` and `end` are those of `start`.

        Answers of bare queries go to the sink that `answer` makes of the statement, its name and the columns, otherwise
        to memory. Rejected rows go to files below the folder `dead_letters`, otherwise to the dead-letter table if they
        are to be kept. A query is called by its sink or its number, unless `names` say otherwise.
        """
        rejected_rows = self.inputs.dead_letters if keep_dead_letters else None
        checkpoint, dead_letters = (held_path(path, self.catalogue.within) for path in (checkpoint, dead_letters))
        builder = SpecBuilder(self.screen, emit, follow, dead_letters, rejected_rows, answer, checkpoint, self.taps)
        run_options = RunOptions(ending_of(follow, end, checkpoint), checkpoint, every, clock, on_batch)
        run = self.runtime.assemble(builder.specs(planned, names), run_options)
        run.listeners += self.listeners
        return run

    def explain_together(self, planned: Sequence[Planned], analyze: bool = False) -> Explained:
        """How the queries among the statements would run together."""
        return explained_all(
            [each for each in planned if each.root is not None],
            self.runtime.measure if analyze else None,
            self.runtime.machine,
            self.runtime.reader,
        )

    def explained(self, planned: Planned) -> Explained:
        """The answer of an EXPLAIN statement."""
        assert isinstance(planned.statement, ExplainStatement)
        explained = self.explain_one(planned, planned.statement.analyze)
        if not planned.statement.json:
            return explained
        plan = {name: value for name, value in explained.plans[0].items() if name != "statement"}
        return Explained(json.dumps(plan, indent=2))

    def explain_one(self, planned: Planned, analyze: bool) -> Explained:
        """How a query would run alone."""
        return explained(planned, self.runtime.measure if analyze else None, self.runtime.machine, self.runtime.reader)

    def execute(
        self,
        text: str,
        *,
        emit: Emit = "changes",
        checkpoint: str | None = None,
        end: bool | None = None,
        parameters: Mapping[str, Value] = MappingProxyType({}),
        watch: Callable[[Run], None] = lambda run: None,
        when_over: Callable[[Run], None] = lambda run: None,
    ) -> Results:
        """All statements of a text, with a result each. `watch` sees the run after batches, `when_over` at its end."""
        planned = self.prepare(text, parameters=parameters, checkpoint=checkpoint)
        standing = [each for each in planned if each.standing]
        run = self.assemble(standing, emit=emit, checkpoint=checkpoint, end=end) if standing else None
        if run is not None:
            run.run(until_full(watch))
            when_over(run)
        queries = {} if run is None else {id(each): query for each, query in zip(standing, run.queries, strict=True)}
        return Results(self.result(each, queries.get(id(each))) for each in planned)

    def collect(self, planned: Planned, emit: Emit) -> Result:
        """Run a query alone, to the end of its input."""
        run = self.assemble([planned], emit=emit)
        run.run(until_full())
        return self.result(planned, run.queries[0])

    def result(self, planned: Planned, query: QueryInRun | None) -> Result:
        """What came of a statement, if it is a query, as that query of a run."""
        text = planned.statement.text
        if isinstance(planned.statement, ExplainStatement):
            return Result(text, text=self.explained(planned))
        if isinstance(planned.statement, ShowStatement):
            return Result(text, shown(planned.statement, planned.catalogue))
        if query is None:
            return Result(text)
        return Result(text, query.table() if query.in_memory else None, status=query.status())
