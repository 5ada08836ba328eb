"""The queries that a console shows: those of a session, of a run, or of a checkpoint."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Final, Protocol

from transom.connectors.tapped import AnswerTap
from transom.core.errors import QueryError
from transom.monitoring.snapshot import state_of, status_json
from transom.program.explained import Explained
from transom.program.live_answer import LiveView
from transom.program.planned import Planned
from transom.program.run import QueryInRun, Run
from transom.program.streaming_query import StreamingQuery, glance
from transom.program.taps import Taps
from transom.program.workspace import Workspace

if TYPE_CHECKING:
    from transom.session import Session

_SECONDS_OF_SIZES: Final = 5.0
"""So old sizes of states may be."""

_MOST_OVER: Final = 100
"""So many queries that are over are still shown."""


KeptOf = Callable[[str], Any]
"""What is kept of the past answers of a query, as its status has it; None where nothing is."""


@dataclass
class ShownQuery:
    """`plan` is that of EXPLAIN; `stop` None: the page cannot. `view` is there of an answer that comes by here."""

    name: str
    text: str
    status: Callable[[], dict[str, Any]]
    plan: Callable[[], Explained | None]
    view: LiveView | None = None
    stop: Callable[[], object] | None = None
    over: bool = False
    past: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """Series of a run that is over, by the seconds that they reach back."""

    _plan: list[Any] = field(default_factory=list)

    def explained(self) -> Explained | None:
        """The plan, made once."""
        if not self._plan:
            self._plan.append(self.plan())
        explained: Explained | None = self._plan[0]
        return explained


class Board(Protocol):
    """What a console shows."""

    @property
    def about(self) -> str:
        """What it is, in a line."""

    @property
    def over(self) -> bool:
        """Whether nothing on it changes any more."""

    def queries(self) -> Sequence[ShownQuery]: ...

    def dead_letters(self) -> AnswerTap | None: ...


class SessionBoard:
    """The queries that `start` and `add` have begun, and for a while those that are over."""

    over = False

    def __init__(self, session: Session, workspace: Workspace) -> None:
        self._session = session
        self._taps = workspace.taps
        self._runtime = workspace.runtime.name
        self._lock = threading.Lock()
        self._shown_of: dict[int, tuple[StreamingQuery, ShownQuery, AnswerTap | None]] = {}
        self._taps.watch()

    @property
    def about(self) -> str:
        return "a session, " + ("on Spark" if self._runtime == "spark" else "in one process")

    def queries(self) -> list[ShownQuery]:
        for query in self._session.queries:
            self.show(query)
        with self._lock:
            over = [key for key, (_, shown, _) in self._shown_of.items() if shown.over]
            active = {shown.name for _, shown, _ in self._shown_of.values() if not shown.over}
            surplus = len(over) - _MOST_OVER
            for number, key in enumerate(over):
                _, shown, tap = self._shown_of[key]
                if number < surplus or shown.name in active:
                    del self._shown_of[key]
                    if self._taps.answers.get(shown.name) is tap:
                        self._taps.answers.pop(shown.name, None)
            return [shown for _, shown, _ in self._shown_of.values()]

    def show(self, query: StreamingQuery) -> None:
        with self._lock:
            if id(query) not in self._shown_of:
                tap = self._taps.answers.get(query.name)
                self._shown_of[id(query)] = query, self._shown(query, tap), tap

    def stop(self, name: str) -> None:
        for query in self._session.queries:
            if query.name == name:
                query.stop(timeout=10)
                return
        raise QueryError(f"no query '{name}' is active", remedy="look at the list of queries")

    def dead_letters(self) -> AnswerTap:
        return self._taps.dead_letters

    def _shown(self, query: StreamingQuery, tap: AnswerTap | None) -> ShownQuery:
        def status() -> dict[str, Any]:
            active, error = query.is_active, query.exception()
            now = glance(query, _SECONDS_OF_SIZES) if active else query.status
            shown.over = not active
            return status_json(
                now,
                runtime=self._runtime,
                state=state_of(active, now.finished, error),
                history=self._session.kept_of(query.name),
                error=error,
            )

        shown = ShownQuery(
            query.name,
            cleandoc(query.statement),
            status,
            query.explain,
            None if tap is None else LiveView(tap),
            lambda: query.stop(timeout=10),
        )
        return shown


class RunBoard:
    """The queries of a run that is made of one text."""

    def __init__(
        self,
        run: Run,
        planned: Sequence[Planned],
        taps: Taps,
        explain: Callable[[], Explained],
        runtime: str,
        kept_of: KeptOf,
    ) -> None:
        self._runtime = runtime
        self._taps = taps
        self._explain = explain
        self._kept_of = kept_of
        self._plans: list[Explained] = []
        self.over = False
        taps.watch()
        self._queries = [
            self._shown(query, prepared, index)
            for index, (query, prepared) in enumerate(zip(run.queries, planned, strict=True))
        ]

    @property
    def about(self) -> str:
        return "transom run, " + ("on Spark" if self._runtime == "spark" else "in one process")

    def queries(self) -> list[ShownQuery]:
        return self._queries

    def dead_letters(self) -> AnswerTap:
        return self._taps.dead_letters

    def _shown(self, query: QueryInRun, planned: Planned, index: int) -> ShownQuery:
        def plan() -> Explained:
            if not self._plans:
                self._plans.append(self._explain())
            own_plan = self._plans[0].plans[index]
            return Explained.of(self._plans[0], [own_plan])

        tap = self._taps.answers.get(query.name)
        return ShownQuery(
            query.name,
            cleandoc(planned.statement.text),
            lambda: status_json(
                query.status(_SECONDS_OF_SIZES), runtime=self._runtime, history=self._kept_of(query.name)
            ),
            plan,
            None if tap is None else LiveView(tap),
        )
