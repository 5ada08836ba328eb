"""The public face: a session knows streams, tables, views and sinks, and runs queries over them.

Where they run is the business of a runtime: in this process, or on Spark. A session does little itself: it has many
imports because it offers what many rooms do.
"""

from __future__ import annotations

import json as json_text
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from os import PathLike
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Final, TypeVar
from typing import Literal as OneOf

import pyarrow as pa

from transom.connectors.connector import OpenSink
from transom.connectors.memory import MemorySink
from transom.core.emit_modes import Emit
from transom.core.errors import (
    OptionError,
)
from transom.core.location import Within
from transom.core.values import Value
from transom.flight.answer_history import AnswerHistory, Kept, with_history
from transom.flight.server import PORT as FLIGHT_PORT
from transom.flight.server import FlightSqlServer
from transom.monitoring.address import Address
from transom.monitoring.http import PORT, MonitoringServer
from transom.monitoring.logs import QueryLog
from transom.monitoring.monitor import Monitor
from transom.plan.catalogue import (
    Catalogue,
)
from transom.plan.options import read_option
from transom.program.active_queries import ActiveQueries
from transom.program.clock import Clock
from transom.program.data import Data, OptionValue, option_text
from transom.program.declare import Bound, Late, TimeUnit, Timing
from transom.program.declare_function import SqlType, add_function, declared_function
from transom.program.explained import Explained
from transom.program.first_run import announce_compiling, announce_workers
from transom.program.inputs import DataFrameInput, FirstInputs, SessionInputs, of_spark
from transom.program.planned import Planned, read_program
from transom.program.progress import Listener
from transom.program.query import Query, StartSpec
from transom.program.query_specs import OnRows, SpecBuilder
from transom.program.result import Result, Results
from transom.program.run import OnBatch, RunOptions, Runtime, until_full
from transom.program.streaming_query import StreamingQuery
from transom.program.workspace import Workspace
from transom.runtimes.local.runtime import LocalRuntime

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from transom.console.open import Console

Body = TypeVar("Body")

PREVIEWED: Final = 1_000
"""So many rows of each input a preview reads."""

PREVIEWED_AT_ONCE: Final = 100
SECONDS_OF_PREVIEW: Final = 5.0
"""When a preview ends, though it may have more to say."""


class Session:
    """Standing queries over files, rows in memory and DataFrames.

    They run in this process, or on Spark: `spark` is a SparkSession of yours, which is used as it is; with
    `runtime="spark"` Transom starts one on this machine, with so many `cores`, when it is first needed.

    Options are those of SET: tick, origin, join, batch_rows, partitions, .. With `within`, queries read and write files
    of that folder alone. In a `with` block, the queries that it started are stopped at the end, and so is what it
    started of Spark.

    >>> session = Session(tick="1 second")
    >>> session.stream("trades", [
    ...     {"at": "2024-05-01 10:00:00", "symbol": "A", "price": 10},
    ...     {"at": "2024-05-01 10:00:01", "symbol": "A", "price": 12},
    ... ], time="at")
    >>> session.run("SELECT symbol, MAX(price) AS high FROM trades [RANGE 1 MINUTE] GROUP BY symbol").to_pylist()
    [{'change': '+', 'at': datetime.datetime(2024, 5, 1, 10, 0), 'symbol': 'A', 'high': 10},
     {'change': '-', 'at': datetime.datetime(2024, 5, 1, 10, 0, 1), 'symbol': 'A', 'high': 10},
     {'change': '+', 'at': datetime.datetime(2024, 5, 1, 10, 0, 1), 'symbol': 'A', 'high': 12},
     {'change': '-', 'at': datetime.datetime(2024, 5, 1, 10, 1, 1), 'symbol': 'A', 'high': 12}]
    """

    def __init__(
        self,
        *,
        runtime: OneOf["local", "spark"] | None = None,
        spark: SparkSession | None = None,
        cores: int | None = None,
        within: str | PathLike[str] | None = None,
        **options: OptionValue,
    ) -> None:
        given = {name.lower(): read_option(name, option_text(value)) for name, value in options.items()}
        inputs = SessionInputs(Catalogue(options=given, within=None if within is None else Within.of(within)))
        runs_on = _runtime(runtime or ("local" if spark is None else "spark"), inputs, spark, cores)
        self._workspace = Workspace(inputs, runs_on)
        self._active = ActiveQueries(self._workspace)
        self._monitor: Monitor | None = None
        self._logs = False
        self._servers: list[MonitoringServer | FlightSqlServer] = []
        self._answers: dict[str, AnswerHistory] | None = None
        self._consoles: list[Console] = []

    @property
    def missing_settings(self) -> Sequence[object]:
        """Settings that the SparkSession should have and has not; each one as text is the line to write."""
        return self._workspace.runtime.missing_settings

    @property
    def runtime(self) -> str:
        """Where queries run: "local", in this process, or "spark"."""
        return self._workspace.runtime.name

    # --- input -------------------------------------------------------------------------------------------------------

    def table(
        self,
        name: str,
        data: Data,
        *,
        time: str | None = None,
        key: str | Sequence[str] = (),
        bound: Bound = timedelta(0),
        late: Late = "drop",
        columns: pa.Schema | None = None,
        time_unit: TimeUnit | None = None,
        replace: bool = False,
    ) -> None:
        """Declare a table with its rows: an Arrow table, a data frame, or dictionaries.

        Without a `time` it never changes. With one, which names the column with the instant of a change, a row takes
        the place of the one with the same `key` before it; the other arguments are those of `stream` then.

        >>> session = Session()
        >>> session.table("rooms", pa.table({"room": ["a", "b"], "floor": [1, 2]}))
        >>> session.run("SELECT room FROM rooms WHERE floor = 2", emit="latest").to_pylist()
        [{'room': 'b'}]
        """
        keys = (key,) if isinstance(key, str) else tuple(key)
        self._workspace.inputs.table(
            name, self._adopted(name, data), columns, Timing(time, time_unit, bound, late), keys, replace
        )

    def stream(
        self,
        name: str,
        data: Data,
        *,
        time: str | None = None,
        bound: Bound = timedelta(0),
        late: Late = "drop",
        columns: pa.Schema | None = None,
        idle: Bound | None = None,
        heartbeat: Bound | None = None,
        ahead: Bound | None = None,
        time_unit: TimeUnit | None = None,
        replace: bool = False,
    ) -> None:
        """Declare a stream with its rows in order of arrival: Arrow tables or batches, a data frame, or dictionaries.

        Rows that an iterator, a generator or an Arrow reader makes are read when a query wants them, and not kept: it
        may be endless, and one query can read it. A function that makes the iterable makes one for every query. The
        columns are those of the first row, unless `columns` names them; those that no SQL type can hold are left out.
        On Spark it may be a DataFrame, which is read where it lives. With `replace` it takes the place of a stream or
        table of its name; queries that read that one go on with it.

        `time` names the column with the instant of a row; without it rows are stamped when they are read. Whole numbers
        are instants if `time_unit` says what they count since 1970: 's', 'ms' or 'us'. `bound` is
        how much older than the newest row a row may be ('2 seconds', or a timedelta), and `late` what becomes of a row
        that is older still. After `idle` of silence the others do not wait for it any more; with a `heartbeat` the
        clock takes its time on while there is nothing to read; rows further `ahead` of the clock are rejected.

        >>> session = Session()
        >>> session.stream("s", [{"t": "2024-05-01", "a": 1}, {"t": "2024-04-30", "a": 2}], time="t",
        ...     late="dead_letter")
        >>> len(session.run("ISTREAM(SELECT a FROM s)")), session.dead_letters["row"].to_pylist()
        (1, ['{"t": "2024-04-30 00:00:00", "a": 2}'])
        """
        timing = Timing(time, time_unit, bound, late, idle, heartbeat, ahead)
        self._workspace.inputs.stream(name, self._adopted(name, data), columns, timing, replace)

    def append(self, name: str, data: Data) -> None:
        """More rows for a stream or table with connector 'memory'.

        >>> session = Session()
        >>> _ = session.execute("CREATE TABLE t (a INTEGER) WITH (connector = 'memory')")
        >>> session.append("t", [{"a": 1}])
        >>> session.run("SELECT a + 1 AS b FROM t", emit="latest").to_pylist()
        [{'b': 2}]
        """
        self._workspace.inputs.append(name, data)

    def function(
        self,
        *types: SqlType,
        returns: SqlType | None = None,
        name: str | None = None,
        nulls: OneOf["propagate", "called"] = "propagate",
        version: str = "1",
        replace: bool = False,
    ) -> Callable[[Body], Body]:
        """A decorator: queries may call the function, which takes Arrow arrays and gives one of their length.

        The types of its arguments and of what it `returns` are SQL names or types of Arrow; without them they are in
        its annotations, as `Annotated[pa.Array, "DOUBLE"]`. Rows with a NULL among the arguments are NULL and not seen
        by it, unless `nulls` is "called". It is deterministic: a row has the same value however often it is computed,
        and beside whichever others. A checkpoint knows its name and `version`: write another one when it computes
        something else. An error in it ends the query.

        >>> import pyarrow.compute as pc
        >>> session = Session()
        >>> session.table("t", [{"c": 20.0}, {"c": None}])
        >>> @session.function("DOUBLE", returns="DOUBLE")
        ... def fahrenheit(celsius: pa.Array) -> pa.Array:
        ...     return pc.add(pc.multiply(celsius, 1.8), 32.0)
        >>> session.run("SELECT fahrenheit(c) AS f FROM t", emit="latest").to_pylist()
        [{'f': None}, {'f': 68.0}]
        """

        def declare(body: Body) -> Body:
            add_function(
                self._workspace.catalogue, declared_function(body, types, returns, name, nulls, version), replace
            )
            return body

        return declare

    @property
    def dead_letters(self) -> pa.Table:
        """Rows that the queries of this session rejected: stream, reason, position, row.

        It is the table `transom_dead_letters` in queries, with the rows that were rejected before the query began.

        >>> session = Session()
        >>> session.stream("s", [{"t": None, "a": 1}], time="t")
        >>> _ = session.run("SELECT a FROM s")
        >>> session.run("SELECT stream, reason FROM transom_dead_letters", emit="latest").to_pylist()
        [{'stream': 's', 'reason': "the time column 't' is NULL"}]
        """
        return self._workspace.inputs.dead_letters.table()

    # --- queries -----------------------------------------------------------------------------------------------------

    def sql(self, text: str, *, emit: Emit = "changes", **parameters: Value) -> Query:
        """A query that is not run yet; declarations may stand before it in the text, and are made at once.

        Parameters stand for `$name` in the text.

        >>> session = Session()
        >>> session.table("t", [{"a": 1}, {"a": 2}])
        >>> query = session.sql("SELECT a FROM t WHERE a > $least", emit="latest", least=1)
        >>> query.to_pylist()
        [{'a': 2}]
        """
        return Query(self._only(text, parameters), emit, self)

    def run(self, text: str, *, emit: Emit = "changes", **parameters: Value) -> Result:
        """The answer of a query over the whole of its input, which must have an end: `sql(..).collect()`.

        >>> session = Session()
        >>> session.table("t", [{"a": 1}, {"a": 2}])
        >>> session.run("SELECT SUM(a) AS total FROM t", emit="latest").to_pylist()
        [{'total': Decimal('3')}]
        """
        return self.sql(text, emit=emit, **parameters).collect()

    def execute(
        self,
        text: str,
        *,
        emit: Emit = "changes",
        checkpoint: str | None = None,
        end: bool | None = None,
        **parameters: Value,
    ) -> Results:
        """All statements of a text, with a result each; nothing starts if any of it is wrong.

        Its queries are run together, to the end of their input. `checkpoint` and `end` are those of `start`.

        >>> session = Session()
        >>> results = session.execute("CREATE TABLE t (a INTEGER) WITH (connector = 'memory'); EXPLAIN SELECT a FROM t")
        >>> results[0].text, results[1].text.splitlines()[0]
        (None, '#1 static_table: table t')
        """
        return self._workspace.execute(text, emit=emit, checkpoint=checkpoint, end=end, parameters=parameters)

    def start(
        self,
        text: str,
        *,
        name: str | None = None,
        emit: Emit = "changes",
        on_rows: OnRows | None = None,
        on_batch: OnBatch | None = None,
        follow: bool = False,
        checkpoint: str | None = None,
        end: bool | None = None,
        clock: Clock | None = None,
        replace: bool = False,
    ) -> StreamingQuery:
        """A query that runs in the background; declarations may stand before it in the text.

        It is called by its sink or a number, unless a `name` is given; with `replace` the query that has the name is
        stopped first, so that a cell of a notebook can be run again.

        Its rows are handed to `on_rows`, in the thread of the query, as they come; without it they are kept in memory.
        With `follow` it waits for more rows at the end of an input that may grow. With a folder as `checkpoint` it goes
        on where it was; `on_rows` gets rows since the last checkpoint again then. At the end of its input it stops, and
        time stays open for the next run that resumes from the checkpoint; with `end`, or without a checkpoint, time
        ends there, and no later run may bring more. On Spark `on_batch` gets them with
        the number of the batch: a batch that is run again has the same number and the same rows.

        >>> session, seen = Session(), []
        >>> session.stream("s", ({"t": f"2024-05-01 00:00:0{i}", "a": i} for i in range(9)), time="t")
        >>> with session.start("ISTREAM(SELECT a FROM s WHERE a > 6)", on_rows=seen.append) as query:
        ...     query.await_progress("2024-05-01 00:00:08", timeout=60)
        True
        >>> [row["a"] for table in seen for row in table.to_pylist()]
        [7, 8]
        """
        spec = StartSpec(name, on_rows, on_batch, follow, checkpoint, end, clock, replace)
        return self._start(self._only(text, checkpoint=checkpoint), emit, spec)

    def add(
        self,
        text: str,
        *,
        name: str | None = None,
        emit: Emit = "changes",
        on_rows: OnRows | None = None,
        follow: bool | None = None,
        replace: bool = False,
    ) -> StreamingQuery:
        """A query that joins those which `add` has brought already, between two steps of theirs.

        If one of them has the same join, the two share it (SET sharing): the new query begins at the progress that the
        others have reached, and its answer is that of the query alone with its origin set to there. Otherwise it reads
        its inputs from their beginning. Its rows are handed to `on_rows`, in the thread of the queries, or kept in
        memory. With the first query `follow` is decided for all: whether they wait for more rows at the end of an
        input; later ones may leave it out. An input that is a Python iterable may keep whoever adds a query waiting
        for the next row. `together` gives the queries a checkpoint.

        >>> session = Session()
        >>> for name in "ab":
        ...     rows = [{"t": "2024-05-01 10:00:00", "k": 1}, {"t": "2024-05-01 10:00:05", "k": 2}]
        ...     session.stream(name, rows, time="t")
        >>> join = "ISTREAM(SELECT a.k FROM a [RANGE {0} SECONDS] JOIN b [RANGE {0} SECONDS] ON a.k = b.k)"
        >>> first = session.add(join.format(1), follow=True)
        >>> first.await_progress("2024-05-01 10:00:04", timeout=60)
        True
        >>> second = session.add(join.format(9), name="wider", follow=True)
        >>> for name in "ab":
        ...     session.append(name, [{"t": "2024-05-01 10:00:09", "k": 1}])
        >>> second.await_progress("2024-05-01 10:00:08", timeout=60)
        True
        >>> [row["k"] for row in first.result.to_pylist()], [row["k"] for row in second.result.to_pylist()]
        ([1, 2], [2])
        >>> _ = second.stop()
        >>> [query.name for query in session.queries]
        ['query-1']
        >>> session.close()
        """
        planned = self._only(text, checkpoint=self._active.checkpoint)
        return self._active.add(planned, name, emit, on_rows, follow, replace)

    @contextmanager
    def together(self, *, checkpoint: str | None = None, follow: bool = False) -> Iterator[None]:
        """The queries that `add` brings within the block begin together, at its end; no others of `add` may be active.

        With a folder as `checkpoint` they, and those that are added later, are kept there: all of their state, how far
        the inputs are read, and what their sinks have. A run that begins with that folder resumes where the last one
        was. A query that was there then, by its name and its text, goes on as if nothing had stopped; a query that was
        not begins as one that comes to the others; one that is not added again is forgotten. A query that was stopped
        while others went on is not there any more.

        >>> from tempfile import TemporaryDirectory
        >>> session = Session()
        >>> join = "ISTREAM(SELECT a.k FROM a [RANGE 9 SECONDS] JOIN b [RANGE 9 SECONDS] ON a.k = b.k)"
        >>> for name, second in (("a", 1), ("b", 3)):
        ...     session.stream(name, [{"t": f"2024-05-01 10:00:0{second}", "k": 1}], time="t")
        >>> with TemporaryDirectory() as folder:
        ...     with session.together(checkpoint=folder):
        ...         first = session.add(join, name="first")
        ...     _ = first.await_termination(timeout=60)
        ...     for name in "ab":
        ...         session.append(name, [{"t": "2024-05-01 10:00:08", "k": 1}])
        ...     with session.together(checkpoint=folder):
        ...         again = session.add(join, name="first")
        ...     _ = again.await_termination(timeout=60)
        >>> len(first.result), len(again.result)
        (0, 1)
        """
        with self._active.together(checkpoint, follow):
            yield

    @property
    def queries(self) -> list[StreamingQuery]:
        """The queries of `start` and `add` that are active."""
        return self._active.queries

    def on_progress(self, callback: Listener) -> None:
        """Have a function called for every batch of the queries that begin from now on, in the thread that runs it."""
        self._workspace.listeners.append(callback)

    # --- from outside ------------------------------------------------------------------------------------------------

    @property
    def monitor(self) -> Monitor:
        """What looks at the queries of `start` and `add` about once a second: their snapshots, and the last hours.

        It begins when it is first asked for.
        """
        if self._monitor is None:
            itself = weakref.ref(self)
            self._monitor = Monitor(self._workspace.runtime.name, lambda: _held_by(itself()))
            self._monitor.kept = lambda name: None if (session := itself()) is None else session.kept_of(name)
            self._monitor.start()
        return self._monitor

    def serve_metrics(self, address: str = f"127.0.0.1:{PORT}") -> MonitoringServer:
        """Serve the figures of the queries for Prometheus at `/metrics`, and as JSON at `/status`, until it is closed.

        They can be read on this machine alone, unless the address is one that others reach. Port 0 is any that is free.

        >>> from urllib.request import urlopen
        >>> with Session() as session:
        ...     server = session.serve_metrics("127.0.0.1:0")
        ...     urlopen(server.url + "/status").read()
        b'{"queries": []}\\n'
        """
        server = MonitoringServer(self.monitor, Address.read(address, PORT))
        self._servers.append(server)
        return server

    def serve_sql(self, address: str = f"127.0.0.1:{FLIGHT_PORT}") -> FlightSqlServer:
        """Serve the answers of the queries that begin from now on over Arrow Flight SQL, until it is closed.

        Each is a view that is called as its query; with `SET history = '10 MINUTES'` it can be asked for as it was, by
        `SELECT .. FROM name AS OF TIMESTAMP '..'`. They can be read on this machine alone, unless the address is one
        that others reach. Port 0 is any that is free.

        >>> with Session() as session:
        ...     session.serve_sql("127.0.0.1:0").url.startswith("grpc://127.0.0.1:")
        True
        """
        answers: dict[str, AnswerHistory] = {} if self._answers is None else self._answers
        server = FlightSqlServer(lambda: dict(answers), Address.read(address, FLIGHT_PORT))
        self._answers, self._workspace.taps.remember = answers, self._remembered
        self._servers.append(server)
        return server

    def kept_of(self, name: str) -> Kept | None:
        """What is kept for `serve_sql` of the answer of a query: rows, bytes, and from which instant on."""
        live = None if self._answers is None else self._answers.get(name)
        return None if live is None else live.kept()

    def log_queries(self) -> None:
        """Have the queries of `start` and `add` in the logger "transom" of Python: a line a batch, and warnings.

        On Spark a batch is one, in this process about a second.
        """
        if not self._logs:
            self._logs = True
            self.monitor.after.append(QueryLog())

    def close(self) -> None:
        """Stop the queries that are active, and Spark if this session started it."""
        for opened in self._consoles:
            opened.close()
        self._active.stop()
        if self._monitor is not None:
            self._monitor.close()
        for server in self._servers:
            server.close()
        self._workspace.runtime.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def explain(
        self, text: str, json: bool = False, analyze: bool = False, fixed: Mapping[str, object] | None = None
    ) -> Explained:
        """How the queries of a text would run, as trees or as JSON; with `analyze` they are run, and measured.

        >>> session = Session()
        >>> session.table("t", [{"a": 1}])
        >>> print(session.explain("SELECT a FROM t"))
        #1 static_table: table t
           keeps nothing; O(1) a row; fragment 1
        fragment 1, any partition: t any into #1
        lifetimes direct: a row passes every operator once; an open end is an open row id of 8 bytes
           not negative: a row would pass every operator twice
        """
        explained = self._workspace.explain_together(self._workspace.prepare(text, fixed), analyze)
        return Explained(json_text.dumps({"queries": explained.plans}, indent=2)) if json else explained

    def preview(self, text: str, *, rows: int = PREVIEWED, emit: Emit = "changes") -> Result:
        """The answer of a query over the first rows of its inputs, which it takes from nobody; in this process.

        Nothing is declared and nothing is written: the rows of an INSERT are shown as well.

        >>> session = Session()
        >>> session.stream("s", [{"t": "2024-05-01", "a": 1}, {"t": "2024-05-02", "a": 2}], time="t")
        >>> session.preview("ISTREAM(SELECT a FROM s)", rows=1).to_pylist()
        [{'at': datetime.datetime(2024, 5, 1, 0, 0), 'a': 1}]
        """
        catalogue = replace(self._workspace.catalogue)
        planned = read_program(
            text, catalogue, {"batch_rows": PREVIEWED_AT_ONCE}, self._workspace.statistics(), one_query=True
        )
        (query,) = (each for each in planned if each.standing)
        view = query.view() if query.sink is None else None
        builder = SpecBuilder(self._workspace.screen, emit, answer=lambda query, name, schema: MemorySink(schema, view))
        runtime = LocalRuntime(FirstInputs(self._workspace.inputs, rows))
        run = runtime.assemble(builder.specs([replace(query, sink=None)]), RunOptions())
        end = time.monotonic() + SECONDS_OF_PREVIEW
        run.run(until_full(lambda run: run.stop() if time.monotonic() > end else None))
        return Result(query.statement.text, run.queries[0].table(), status=run.queries[0].status())

    def console(self, address: str = "127.0.0.1:4040", *, allow_changes: bool = False) -> Console:
        """A page for a browser that shows the queries of this session while they run; it is served until its `close`
        or that of the session. Its `url` is the address to open.

        It answers this machine alone, unless the address is another one. With `allow_changes` whoever has the `url`,
        which carries a random token, may declare inputs, and start and stop queries as the program may itself.

        Needs `pip install 'transom[console]'`.
        """
        from transom.console.open import session_console

        opened = session_console(self, self._workspace, address, allow_changes)
        self._consoles.append(opened)
        return opened

    # --- inside ------------------------------------------------------------------------------------------------------

    def _only(
        self,
        text: str,
        parameters: Mapping[str, Value] = MappingProxyType({}),
        checkpoint: str | None = None,
    ) -> Planned:
        planned = self._workspace.prepare(text, parameters=parameters, one_query=True, checkpoint=checkpoint)
        (query,) = (each for each in planned if each.standing)
        return query

    def _adopted(self, name: str, data: Data) -> Data | DataFrameInput:
        return self._workspace.runtime.adopt(name, data) if of_spark(data) else data

    def _collect(self, planned: Planned, emit: Emit) -> Result:
        return self._workspace.collect(planned, emit)

    def _explain(self, planned: Planned, analyze: bool) -> Explained:
        return self._workspace.explain_one(planned, analyze)

    def _to_spark(self, planned: Planned, emit: Emit) -> DataFrame:
        return self._workspace.runtime.dataframe(SpecBuilder(self._workspace.screen, emit).specs([planned])[0])

    def _start(self, planned: Planned, emit: Emit, spec: StartSpec) -> StreamingQuery:
        return self._active.start(planned, emit, spec)

    def _remembered(self, planned: Planned, name: str, opens: OpenSink) -> OpenSink:
        """Whoever is served with answers hears of what goes to the sink."""
        answers = {} if self._answers is None else self._answers
        answers[name] = AnswerHistory(name, planned.catalogue.options.get("history") or 0)
        return with_history(opens, answers[name])


def workspace_of(session: Session) -> Workspace:
    """The parts of a session, for whoever hosts one; they are not for users."""
    return session._workspace


def _held_by(session: Session | None) -> list[StreamingQuery]:
    """Also those that have just ended."""
    return [] if session is None else list(session._active.held)


def _runtime(name: str, inputs: SessionInputs, spark: SparkSession | None, cores: int | None) -> Runtime:
    """The only place that tells runtimes apart. PySpark takes long to import, so it is done only here."""
    if name == "local":
        if spark is not None:
            raise OptionError("runtime='local' has no use for spark=..", remedy="leave one of the two out")
        announce_compiling()
        return LocalRuntime(inputs)
    if name == "spark":
        from transom.runtimes.spark.cache import anything_compiled
        from transom.runtimes.spark.runtime import SparkRuntime

        if spark is None:
            announce_workers(compiled=anything_compiled())
        return SparkRuntime(inputs, spark, cores)
    raise OptionError(f"runtime cannot be '{name}'", remedy="write local or spark")
