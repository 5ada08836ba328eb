"""A query that is not run yet: what `Session.sql` gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from transom.core.emit_modes import Emit
from transom.core.values import Row
from transom.pipeline.answer import output_form, output_schema
from transom.program.clock import Clock
from transom.program.explained import Explained
from transom.program.planned import Planned
from transom.program.query_specs import OnRows, check_emit
from transom.program.result import Result
from transom.program.run import OnBatch
from transom.program.streaming_query import StreamingQuery

if TYPE_CHECKING:
    import pandas
    import polars
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class StartSpec:
    """How a query is run in the background; what each means is said by `Query.start`."""

    name: str | None = None
    on_rows: OnRows | None = None
    on_batch: OnBatch | None = None
    follow: bool = False
    checkpoint: str | None = None
    end: bool | None = None
    clock: Clock | None = None
    replace: bool = False


class QueryHost(Protocol):
    """Runs queries: a session."""

    def _collect(self, planned: Planned, emit: Emit) -> Result: ...

    def _start(self, planned: Planned, emit: Emit, spec: StartSpec) -> StreamingQuery: ...

    def _explain(self, planned: Planned, analyze: bool) -> Explained: ...

    def _to_spark(self, planned: Planned, emit: Emit) -> DataFrame: ...


class Query:
    """A query that is planned, and not run: made by `Session.sql`. A notebook shows its plan.

    Whatever asks for its rows runs it, over the whole of its input, which must have an end; whoever asks again runs it
    again. `start` runs it in the background, over an input that may be endless.

    >>> from transom import Session
    >>> session = Session()
    >>> session.stream("s", [{"t": "2024-05-01", "a": 1}, {"t": "2024-05-02", "a": 2}], time="t")
    >>> query = session.sql("SELECT MAX(a) AS a FROM s WHERE a < $most", emit="latest", most=2)
    >>> query.schema.names, query.to_pylist()
    (['a'], [{'a': 1}])
    >>> with query.start() as running:
    ...     running.await_termination(timeout=60)
    True
    """

    def __init__(self, planned: Planned, emit: Emit, host: QueryHost) -> None:
        check_emit(emit)
        self._planned = planned
        self._emit: Emit = emit
        self._host = host

    @property
    def statement(self) -> str:
        """The text of the query."""
        return self._planned.statement.text

    @property
    def schema(self) -> pa.Schema:
        """The columns of its answer."""
        root, sink = self._planned.root, self._planned.sink
        assert root is not None
        return output_schema(output_form(root, self._emit if sink is None else sink.emit), root.schema)

    def collect(self) -> Result:
        """Run it to the end of its input: its rows, or, of an INSERT, how it went."""
        return self._host._collect(self._planned, self._emit)

    def to_arrow(self) -> pa.Table:
        """Run it: the rows as an Arrow table."""
        return self.collect().to_arrow()

    def to_pylist(self) -> list[Row]:
        """Run it: the rows as dictionaries."""
        return self.collect().to_pylist()

    def to_pandas(self) -> pandas.DataFrame:
        """Run it: the rows as a pandas data frame; pandas must be installed."""
        return self.collect().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Run it: the rows as a Polars data frame; Polars must be installed."""
        return self.collect().to_polars()

    def to_spark(self) -> DataFrame:
        """The answer as a streaming DataFrame to go on with, of a session on Spark; nothing is run yet."""
        return self._host._to_spark(self._planned, self._emit)

    def start(
        self,
        *,
        name: str | None = None,
        on_rows: OnRows | None = None,
        on_batch: OnBatch | None = None,
        follow: bool = False,
        checkpoint: str | None = None,
        end: bool | None = None,
        clock: Clock | None = None,
        replace: bool = False,
    ) -> StreamingQuery:
        """Run it in the background: see `Session.start`."""
        spec = StartSpec(name, on_rows, on_batch, follow, checkpoint, end, clock, replace)
        return self._host._start(self._planned, self._emit, spec)

    def explain(self, *, analyze: bool = False) -> Explained:
        """How it would run; with `analyze` it is run, and measured."""
        return self._host._explain(self._planned, analyze)

    def __repr__(self) -> str:
        return f"<Query {' '.join(self.statement.split())}>"

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()
