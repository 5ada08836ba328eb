"""What is looked at from outside: a query that goes on in the background, or among those that a command runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol

from transom.program.progress import Progress
from transom.program.run import QueryInRun, Run
from transom.program.status import Status


class Watched(Protocol):
    """A query as its handle shows it (`StreamingQuery`)."""

    @property
    def name(self) -> str: ...

    @property
    def is_active(self) -> bool: ...

    @property
    def status(self) -> Status: ...

    @property
    def recent_progress(self) -> Sequence[Progress]: ...

    def exception(self) -> BaseException | None: ...


class RunWatch:
    """The queries of a run that nobody holds a handle of; it is run within it, and how it ended is seen here."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.over = False
        self.error: BaseException | None = None
        self.when_over: Callable[[], None] = lambda: None
        self._queries: dict[str, Watched] = {}

    def __enter__(self) -> RunWatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.error = error if isinstance(error, Exception) else None  # whoever interrupts it has stopped it
        self.over = True
        self.when_over()

    def queries(self) -> list[Watched]:
        if self.run is not None:
            for query in self.run.queries if not self._queries else ():
                self._queries[query.name] = _OfRun(self, self.run, query)
        return list(self._queries.values())


class _OfRun:
    def __init__(self, watch: RunWatch, run: Run, query: QueryInRun) -> None:
        self._watch, self._run, self._query = watch, run, query

    @property
    def name(self) -> str:
        return self._query.name

    @property
    def is_active(self) -> bool:
        return not self._watch.over

    @property
    def status(self) -> Status:
        return self._query.status()

    @property
    def recent_progress(self) -> Sequence[Progress]:
        return self._run.recent(self.name)

    def exception(self) -> BaseException | None:
        return self._watch.error
