"""The queries of a session that run in the background: each in a run of its own, or brought by `add` to those before.

What a caller may write of them is said by `Session.start`, `Session.add` and `Session.together`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import count

from transom.core.emit_modes import Emit
from transom.core.errors import OptionError, QueryError
from transom.core.location import held_path
from transom.core.text import visible
from transom.plan.catalogue import QueryStatement
from transom.program.arguments import require_text
from transom.program.background import BackgroundRun
from transom.program.planned import Planned
from transom.program.query import StartSpec
from transom.program.query_specs import OnRows, SpecBuilder, handing
from transom.program.run import EVERY, OnBatch, QueryInRun, QuerySpec, RunOptions, ending_of
from transom.program.streaming_query import StreamingQuery
from transom.program.workspace import Workspace


class ActiveQueries:
    """`held` are their handles, with those of queries that have just ended."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.held: list[StreamingQuery] = []
        self._runs: list[BackgroundRun] = []
        self._added_to: BackgroundRun | None = None
        """The run of the queries of `add`."""
        self._follow = False
        self._checkpoint: str | None = None
        """Of that run: whether its queries follow their inputs, and where they are kept."""

    @property
    def queries(self) -> list[StreamingQuery]:
        """Those that are active."""
        return [query for query in self.held if query.is_active]

    @property
    def checkpoint(self) -> str | None:
        """Where the next query of `add` will be kept: with those that are there."""
        return self._checkpoint if self._adding else None

    @property
    def _adding(self) -> bool:
        return self._added_to is not None and not self._added_to.over

    def start(self, planned: Planned, emit: Emit, spec: StartSpec) -> StreamingQuery:
        """Begin a query in a run of its own."""
        _check_takers(planned, spec.on_rows, spec.on_batch)
        _check_limit(planned)
        called = self._free_name(spec.name, spec.replace)
        if called is None and planned.sink is None and spec.checkpoint is None:
            called = self._next_name()
        run = self._workspace.assemble(
            [planned],
            emit=emit,
            follow=spec.follow,
            checkpoint=spec.checkpoint,
            end=spec.end,
            # Without a checkpoint nothing is gained by waiting: rows in memory are shown at once.
            every=1 if planned.sink is None and spec.checkpoint is None else EVERY,
            answer=handing(spec.on_rows),
            clock=spec.clock,
            on_batch=spec.on_batch,
            names=[] if called is None else [called],
        )
        background = BackgroundRun(run, run.queries[0].name)
        background.start()
        return self._hold(planned, run.queries[0], background)

    def add(
        self,
        planned: Planned,
        name: str | None,
        emit: Emit,
        on_rows: OnRows | None,
        follow: bool | None,
        replace: bool,
    ) -> StreamingQuery:
        """Bring a query to those that were added before, or begin with it."""
        _check_takers(planned, on_rows, None)
        called = self._free_name(name, replace) or self._next_name()
        while True:
            background = self._added_to
            if background is None or background.over:
                background, self._follow = self._open_run(bool(follow), None), bool(follow)
                background.run.begin()
            if follow not in (None, self._follow):
                raise OptionError(
                    f"the queries that run {'' if self._follow else 'do not '}follow their inputs",
                    remedy=f"write follow={self._follow}, or stop them first",
                )
            try:
                query = background.add(self._spec(planned, called, emit, on_rows))
            except CancelledError:
                continue  # the others have just come to the end of their input
            if background is not self._added_to:
                self._added_to = background
                background.start()
            return self._hold(planned, query, background)

    @contextmanager
    def together(self, checkpoint: str | None, follow: bool) -> Iterator[None]:
        """What is added within the block begins at its end."""
        if self._adding:
            raise QueryError(
                "queries of add are active already, and have begun",
                remedy="add the others to them, or stop() them first",
            )
        background = self._added_to = self._open_run(follow, checkpoint)
        self._follow = follow
        try:
            yield
            background.run.begin()
        except BaseException as error:
            background.abandon(error)
            raise
        if background.run.queries:
            background.start()
        else:
            background.abandon(None)

    def stop(self) -> None:
        """Stop all of them."""
        for run in self._runs:
            run.stop()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _spec(self, planned: Planned, name: str, emit: Emit, on_rows: OnRows | None) -> QuerySpec:
        _check_limit(planned)
        dead_letters, answer = self._workspace.inputs.dead_letters, handing(on_rows)
        builder = SpecBuilder(
            self._workspace.screen,
            emit,
            self._follow,
            rejected=dead_letters,
            answer=answer,
            checkpoint=self._checkpoint,
            taps=self._workspace.taps,
        )
        return builder.specs([planned], [name])[0]

    def _open_run(self, follow: bool, checkpoint: str | None) -> BackgroundRun:
        self._checkpoint = held_path(checkpoint, self._workspace.catalogue.within)
        # Without a checkpoint nothing is gained by waiting: rows in memory are shown at once.
        every = 1 if self._checkpoint is None else EVERY
        run_options = RunOptions(ending_of(follow, None, self._checkpoint), self._checkpoint, every)
        run = self._workspace.runtime.open(run_options)
        run.listeners += self._workspace.listeners
        return BackgroundRun(run, "added queries")

    def _hold(self, planned: Planned, query: QueryInRun, background: BackgroundRun) -> StreamingQuery:
        made = StreamingQuery(
            query, background, planned, self._workspace.runtime.machine, self._workspace.runtime.reader
        )
        self.held = [*self.queries, made]
        self._runs = [each for each in self._runs if not each.over and each is not background] + [background]
        return made

    def _free_name(self, name: str | None, replace: bool) -> str | None:
        """A name that was given; with `replace`, the query that has it is stopped."""
        if name is None:
            return None
        require_text(name, "the name of a query")
        if not re.fullmatch(r"[\w .-]*\w[\w .-]*", name):
            raise OptionError(
                f"a query cannot be called '{visible(name)}'", remedy="write letters, digits, '_' and '-'"
            )
        for other in self.queries:
            if other.name == name:
                if not replace:
                    raise QueryError(
                        f"a query '{name}' is active already",
                        remedy="give another name, stop() it, or write replace=True",
                    )
                other.stop()
        return name

    def _next_name(self) -> str:
        taken = {query.name for query in self.queries}
        return next(name for number in count(1) if (name := f"query-{number}") not in taken)


def _check_limit(planned: Planned) -> None:
    """LIMIT without ORDER BY is for whoever waits for the rows."""
    if isinstance(planned.statement, QueryStatement) and planned.statement.limit is not None:
        raise QueryError(
            "LIMIT without ORDER BY ends a run, and a query in the background goes on",
            remedy="run() the query, or write ORDER BY .. LIMIT n for the first rows of an order",
        )


def _check_takers(planned: Planned, on_rows: OnRows | None, on_batch: OnBatch | None) -> None:
    """Rows go to a sink or to a function, not to both."""
    taker = "on_rows" if on_batch is None else "on_batch"
    if planned.sink is not None and (on_rows is not None or on_batch is not None):
        raise OptionError(
            f"the rows go to the sink '{planned.sink.name}', and {taker} would get none",
            remedy=f"leave {taker} out, or write the query without INSERT INTO",
        )
