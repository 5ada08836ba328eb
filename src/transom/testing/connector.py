"""How a connector is proved: base classes of tests for pytest. A subclass has a fixture `place` that says how to
declare the source or sink for one test, and how a test writes to it or sees what was written; all tests are inherited.

`SourceTests`: offsets and splits are JSON; a split that is read again, anywhere, gives the same rows, whatever has come
since; from any offset exactly what is behind it is read, also when that is settled (`settle`: nobody goes back);
a query that dies and resumes has every row once.

`SinkTests`: an epoch is seen whole after its commit and not before; a repeated commit does nothing; whenever the
process dies, before or after each of write, prepare, checkpoint and commit, every row is seen once; what was aborted is
not seen.

Processes die by an exception here, at each of these moments. To kill real ones at any moment is left to you.
"""

from __future__ import annotations

import itertools
import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa

from transom.connectors.connector import Connector, Limits, Opening, Plan, Resume, Sink, SinkDeclaration, Source, Split
from transom.connectors.open import open_sink_of, open_source
from transom.connectors.registry import find_connector, register
from transom.connectors.source import Position
from transom.cql.statements import parse_statements
from transom.plan.catalogue import Catalogue, SinkDefinition, StreamDefinition
from transom.session import Session, workspace_of

Row = tuple[Any, ...]

_BEGIN: Final = datetime(2024, 5, 1)
_TIME: Final = pa.timestamp("us")


@dataclass(frozen=True)
class SourcePlace:
    """A source that has nothing yet. `append` lets rows `(ts, v)` come: instants in order, and whole numbers. The
    stream has these two columns; rows of several partitions may come in any order."""

    properties: dict[str, str]
    append: Callable[[list[tuple[datetime, int]]], None]


@dataclass(frozen=True)
class SinkPlace:
    """A sink that has nothing yet. `rows` is what an ordinary client sees of it now, with the columns in their order;
    nothing, if there is no such table or topic yet. Of an answer with `emit = 'net'` it is the table that the changes
    lead to, without the column `change`. `died` is for what the operating system does when a process dies: it closes
    the connections of its sink."""

    properties: dict[str, str]
    rows: Callable[[], Iterable[Row]]
    died: Callable[[Any], object] = lambda sink: None


class Died(BaseException):
    """The process dies here."""


def _rows(first: int, behind: int) -> list[tuple[datetime, int]]:
    return [(_BEGIN + timedelta(seconds=at), at) for at in range(first, behind)]


def _as_json(value: Any) -> Any:
    """The position as a checkpoint gives it back, which must be unchanged."""
    again = json.loads(json.dumps(value))
    assert again == value, f"{value!r} is not the same after it was JSON: {again!r}"
    return again


# --- sources ---------------------------------------------------------------------------------------------------------


class SourceTests:
    """Give it the fixture `place`, a `SourcePlace`."""

    batches: ClassVar[Sequence[int | None]] = (1, 3, None)
    """How many rows a batch may have, in one test after the other."""

    def test_every_row_is_read_once_whatever_the_batches(self, place: SourcePlace) -> None:
        place.append(_rows(0, 7))
        for rows in self.batches:
            read = _ReadSource(place, rows)
            assert read.to_the_end() == list(range(7)), f"batches of {rows}"
            assert not read.to_the_end(), "at the end there is nothing"

    def test_limits_are_kept(self, place: SourcePlace) -> None:
        place.append(_rows(0, 7))
        for plan in _ReadSource(place, 2).plans():
            # A source with several partitions may take a row of each.
            assert plan.rows <= max(2, len({split.partition for split in plan.splits}))

    def test_from_any_offset_exactly_what_is_behind_it_is_read(self, place: SourcePlace) -> None:
        place.append(_rows(0, 7))
        for rows in self.batches:
            read = _ReadSource(place, rows)
            before: list[int] = []
            for plan in read.plans():
                before += read.values(plan)
                read.source.settle(_as_json(plan.position))
                after = _ReadSource(place, rows, _as_json(plan.position)).to_the_end()
                assert sorted(before + after) == list(range(7))

    def test_a_split_gives_the_same_rows_whenever_and_wherever_it_is_read(self, place: SourcePlace) -> None:
        place.append(_rows(0, 7))
        read = _ReadSource(place, 4)
        plans = list(read.plans())
        expected = [read.values(plan) for plan in plans]
        place.append(_rows(7, 9))
        reader = read if not read.source.distributed else _ReadSource(place, 4)
        for plan, values in reversed(list(zip(plans, expected, strict=True))):
            assert reader.values(plan) == values, "read again, after more has come"
        for plan in plans:
            again = _ReadSource(place, 4)
            for split in plan.splits if read.source.distributed else ():
                assert again.split(_as_split(split)) == read.split(split), "read by one that planned nothing"

    def test_a_split_that_can_be_cut_has_the_same_rows_in_pieces(self, place: SourcePlace) -> None:
        place.append(_rows(0, 7))
        read = _ReadSource(place, None)
        for split in (split for plan in read.plans() for split in plan.splits if split.divisible):
            for cut in range(1, split.rows):
                parts = [split.part(0, cut), split.part(cut, split.rows)]
                assert [value for part in parts for value in read.split(part)] == read.split(split)

    def test_what_comes_later_is_read_later(self, place: SourcePlace) -> None:
        place.append(_rows(0, 3))
        read = _ReadSource(place, 2, growing=True)
        assert read.to_the_end() == [0, 1, 2]
        place.append(_rows(3, 8))
        assert read.to_the_end() == [3, 4, 5, 6, 7]
        place.append(_rows(8, 9))
        assert _ReadSource(place, 2, _as_json(read.position), growing=True).to_the_end() == [8]

    def test_a_query_that_dies_and_resumes_has_every_row_once(self, place: SourcePlace, tmp_path: Path) -> None:
        place.append(_rows(0, 20))
        answers = SinkPlace({"connector": "files", "path": f"{tmp_path}/answers.csv"}, lambda: ())
        for at in range(1, 6):  # each time after so many rows
            _run_query(place.properties, answers, "stream", tmp_path, _Dying("prepared", at))
        place.append(_rows(20, 30))
        _run_query(place.properties, answers, "stream", tmp_path, None)
        lines = (tmp_path / "answers.csv").read_text().splitlines()
        assert sorted(int(line.split(",")[-1]) for line in lines[1:]) == list(range(30))


class _ReadSource:
    """A source that is read batch after batch, from a position on."""

    def __init__(self, place: SourcePlace, rows: int | None, position: Position | None = None, growing: bool = False):
        self.source: Source = open_source(_stream(place.properties))
        self.position: Position = {} if position is None else position
        self._limits = Limits(rows)
        self._growing = growing

    def plans(self) -> Iterator[Plan]:
        for _ in range(100):
            plan = self.source.plan(self.position, self._limits, growing=self._growing)
            self.position = _as_json(plan.position)
            if plan.splits:
                yield plan
            if plan.ended:
                return
        raise AssertionError("there is no end")

    def to_the_end(self) -> list[int]:
        return sorted(value for plan in self.plans() for value in self.values(plan))

    def values(self, plan: Plan) -> list[int]:
        return [value for split in plan.splits for value in self.split(_as_split(split))]

    def split(self, split: Split) -> list[int]:
        values: list[int] = []
        for part in self.source.read_split(split):
            assert not part.rejected, f"rows cannot be read: {part.rejected}"
            assert part.rows.schema.equals(self.source.schema), "rows have the declared columns"
            values += part.rows.column("v").to_pylist()
        assert len(values) == split.rows, f"a split of {split.rows} rows has {len(values)}"
        return values


def _as_split(split: Split) -> Split:
    return Split.unpacked(_as_json(split.packed()))


def _stream(properties: dict[str, str]) -> StreamDefinition:
    catalogue = Catalogue()
    parse_statements(_declared_stream(properties), catalogue)
    stream = catalogue.relations["s"]
    assert isinstance(stream, StreamDefinition)
    return stream


def _declared_stream(properties: dict[str, str]) -> str:
    columns = "ts TIMESTAMP, v INTEGER, WATERMARK FOR ts AS ts - INTERVAL '1' HOUR"
    return f"CREATE STREAM s ({columns}) WITH ({_with(properties)});"


def _with(properties: dict[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value.replace(chr(39), chr(39) * 2)}'" for name, value in properties.items())


# --- sinks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Epochs:
    """Rows of an answer in some form, epoch by epoch, and what is seen of them after each."""

    schema: pa.Schema
    epochs: list[list[Row]]
    seen: list[set[Row]]
    key: tuple[str, ...] | None = None

    def batches(self, number: int, cut: int) -> list[pa.RecordBatch]:
        """The batches of an epoch, which may be others when it comes again."""
        table = pa.Table.from_pylist(
            [dict(zip(self.schema.names, row, strict=True)) for row in self.epochs[number]], self.schema
        )
        batches: list[pa.RecordBatch] = table.combine_chunks().to_batches(max_chunksize=cut)
        return batches


def _appended(schema: pa.Schema, epochs: list[list[Row]]) -> _Epochs:
    seen = [{row for epoch in epochs[: number + 1] for row in epoch} for number in range(len(epochs))]
    return _Epochs(schema, epochs, seen)


def _at(seconds: int) -> datetime:
    return _BEGIN + timedelta(seconds=seconds)


_ROW: Final = [("k", pa.string()), ("v", pa.int32())]
_FORMS: Final[dict[str, _Epochs]] = {
    "stream": _appended(
        pa.schema([("at", _TIME), *_ROW]),
        [[(_at(0), "a", 1), (_at(1), "b", None)], [], [(_at(2), "a", 2), (_at(2), "it's", 3)], [(_at(3), None, 4)]],
    ),
    "changes": _appended(
        pa.schema([("change", pa.string()), ("at", _TIME), *_ROW]),
        [[("+", _at(0), "a", 1)], [], [("-", _at(1), "a", 1), ("+", _at(1), "b", None)], [("-", _at(2), "b", None)]],
    ),
    "lifetimes": _appended(
        pa.schema([*_ROW, ("ta", _TIME), ("te", _TIME)]),
        [
            [("a", 1, _at(0), _at(2))],
            [],
            [("b", None, _at(1), _at(3)), ("c", 3, _at(2), _at(3))],
            [("a", 2, _at(2), None)],
        ],
    ),
    "net": _Epochs(
        pa.schema([pa.field("change", pa.string(), nullable=False), *(pa.field(*each) for each in _ROW)]),
        [
            [("+", "a", 1), ("+", "b", 2), ("+", None, 3)],
            [],
            [("+", "a", 4), ("-", "b", 2), ("+", "c", None)],
            [("+", "b", 5), ("-", "c", None), ("-", None, 3)],
        ],
        [{("a", 1), ("b", 2), (None, 3)}] * 2 + [{("a", 4), (None, 3), ("c", None)}, {("a", 4), ("b", 5)}],
        ("k",),
    ),
}  # fmt: skip


class SinkTests:
    """Give it the fixture `place`, a `SinkPlace`, and in `forms` how answers are written to it.

    A runtime of this process stages what a sink prepares, and commits it again; one like Spark brings the rows of an
    epoch again, under the same number (`replayed`).
    """

    forms: ClassVar[Sequence[str]] = tuple(_FORMS)

    def pytest_generate_tests(self, metafunc: Any) -> None:
        if "form" in metafunc.fixturenames:
            metafunc.parametrize("form", self.forms)
        if "replayed" in metafunc.fixturenames:
            metafunc.parametrize("replayed", [False, True], ids=["staged", "replayed"])

    def test_an_epoch_is_seen_after_its_commit_and_not_before(
        self, place: SinkPlace, tmp_path: Path, form: str, replayed: bool
    ) -> None:
        runtime = _Runtime(place, tmp_path, form, replayed)
        before: set[Row] = set()
        for number, seen in enumerate(runtime.answer.seen):
            runtime.write(number)
            runtime.expect(before, "what was written is not seen yet")
            runtime.prepare(number)
            runtime.expect(before, "what was prepared is not seen yet")
            runtime.commit(number)
            runtime.expect(seen, "what was committed is seen")
            runtime.sink.commit(number, runtime.token)
            runtime.expect(seen, "a repeated commit does nothing")
            before = seen
        runtime.sink.close()
        runtime.expect(before, "and stays")

    def test_every_row_is_seen_once_whenever_the_process_dies(
        self, place: SinkPlace, tmp_path: Path, form: str, replayed: bool
    ) -> None:
        runtime = _Runtime(place, tmp_path, form, replayed)
        for number, seen in enumerate(runtime.answer.seen):
            before = runtime.answer.seen[number - 1] if number else set()
            if number % 2:  # whoever has to connect again takes his time for it
                runtime.all_of(number)
                continue
            runtime.write(number)
            runtime.resume(number)  # it died before it prepared
            runtime.expect(before, "rows of a process that died are not seen")
            runtime.write(number)
            runtime.prepare(number)
            runtime.resume(number)  # and before a checkpoint counted it
            runtime.expect(before, "what no checkpoint counts is not seen")
            runtime.write(number)
            runtime.prepare(number)
            runtime.count(number)
            runtime.resume(number)
            runtime.again(number)
            runtime.expect(seen, "what a checkpoint counts is seen")
            runtime.resume(number)  # it died after the commit, of which the log does not know
            runtime.again(number)
            runtime.expect(seen, "a commit that is repeated after a restart does nothing")
        runtime.sink.close()
        runtime.expect(seen, "and stays")

    def test_what_was_aborted_is_not_seen(self, place: SinkPlace, tmp_path: Path, form: str, replayed: bool) -> None:
        runtime = _Runtime(place, tmp_path, form, replayed)
        runtime.all_of(0)
        runtime.write(2)
        runtime.sink.abort(1)
        runtime.expect(runtime.answer.seen[0], "what was aborted is not seen")
        runtime.resume(1)
        runtime.all_of(1, of=2)
        runtime.expect(runtime.answer.seen[2], "the next run writes it")
        runtime.sink.close()

    def test_a_query_that_dies_and_resumes_has_its_answer_there_once(
        self, place: SinkPlace, tmp_path: Path, form: str
    ) -> None:
        with open(tmp_path / "s.csv", "w") as file:
            file.writelines(["ts,v\n", *(f"{instant},{value}\n" for instant, value in _rows(0, 40))])
        source = {"connector": "files", "path": f"{tmp_path}/s.csv"}
        for at, moment in enumerate(("written", "prepared", "counted", "committed", "prepared"), 1):
            _run_query(source, place, form, tmp_path, _Dying(moment, at))
        _run_query(source, place, form, tmp_path, None)
        rows = sorted(place.rows(), key=repr)
        expected = sorted(_expected(form), key=repr)
        assert rows == expected, f"{rows} is seen instead of {expected}"


@dataclass
class _Runtime:
    """Takes a sink through epochs, dies, and resumes: as the runtime of this process, or as one that brings rows again.

    `token` is what the last epoch was prepared with, `_counted` which epoch the checkpoint has and its token.
    """

    place: SinkPlace
    folder: Path
    form: str
    replayed: bool
    answer: _Epochs = field(init=False)
    sink: Sink = field(init=False)
    token: Any = None
    _counted: tuple[int, Any] | None = None
    _cuts: Iterator[int] = field(default_factory=lambda: itertools.cycle((1, 100, 2)))

    def __post_init__(self) -> None:
        self.answer = _FORMS[self.form]
        self.sink = self._open(None)

    def _open(self, resume: Resume | None) -> Sink:
        properties = dict(self.place.properties)
        definition = SinkDefinition("o", properties=properties)
        declared = SinkDeclaration("o", properties, staging=str(self.folder / "staged"))
        opening = Opening(self.answer.schema, resume, replayed=self.replayed, form=self.form, key=self.answer.key)
        return open_sink_of(definition, declared, lambda: "the run/o")(opening)

    def write(self, of: int) -> None:
        for batch in self.answer.batches(of, next(self._cuts)):
            self.sink.write(batch)

    def prepare(self, number: int) -> None:
        self.token = json.loads(json.dumps(self.sink.prepare(number)))  # as a checkpoint gives it back

    def count(self, number: int) -> None:
        """The checkpoint has it; one like Spark only knows that it has begun."""
        self._counted = number, self.token

    def commit(self, number: int) -> None:
        self.count(number)
        self.sink.commit(number, self.token)

    def all_of(self, number: int, of: int | None = None) -> None:
        self.write(number if of is None else of)
        self.prepare(number)
        self.commit(number)

    def resume(self, number: int) -> None:
        """Another process goes on, after one that has died in this epoch. It never heard of what the old one does."""
        self.place.died(self.sink)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # files that the dead one had open
            if self.replayed:
                self.sink = self._open(Resume(number, number + 1))
            elif self._counted is None:
                self.sink = self._open(None)
            else:
                epoch, token = self._counted
                self.sink = self._open(Resume(epoch + 1, epoch + 1, token))
        if not self.replayed and self._counted is not None:
            self.sink.commit(*self._counted)

    def again(self, number: int) -> None:
        """The rows of the epoch come again where they do."""
        if self.replayed:
            self.all_of(number)

    def expect(self, seen: set[Row], what: str) -> None:
        rows = sorted(map(tuple, self.place.rows()), key=repr)
        assert rows == sorted(seen, key=repr), what


# --- a query of the engine, which dies -------------------------------------------------------------------------------


@dataclass
class _Dying:
    """The process dies at a moment of the epoch `at` since it started, and does nothing any more."""

    moment: str
    at: int
    epochs: int = 0
    dead: bool = False

    def reach(self, moment: str) -> None:
        if self.dead:
            raise Died
        self.epochs += moment == "written"
        if self.epochs >= self.at and moment == self.moment:
            self.dead = True
            raise Died


class _DyingSink(Sink):
    """Another sink until the process dies."""

    def __init__(self, sink: Sink, dying: _Dying) -> None:
        self._sink = sink
        self._dying = dying

    def write(self, batch: pa.RecordBatch) -> None:
        if not self._dying.dead:
            self._sink.write(batch)

    def prepare(self, epoch: int) -> Any:
        self._dying.reach("written")
        token = self._sink.prepare(epoch)
        self._dying.reach("prepared")
        return token

    def commit(self, epoch: int, token: Any) -> None:
        self._dying.reach("counted")
        self._sink.commit(epoch, token)
        self._dying.reach("committed")

    def abort(self, epoch: int) -> None:
        if not self._dying.dead:
            self._sink.abort(epoch)

    def close(self) -> None:
        if not self._dying.dead:
            self._sink.close()


_QUERIES: Final[dict[str, str]] = {
    "stream": "ISTREAM(SELECT v FROM s)",
    "changes": "SELECT v FROM s [RANGE 5 SECONDS]",
    "lifetimes": "SELECT v FROM s [RANGE 5 SECONDS]",
    "net": "SELECT v % 7 AS k, COUNT(*) AS n, MAX(v) AS most FROM s [ROWS 10] WHERE v % 3 < 2 GROUP BY v % 7",
}


def _run_query(source: dict[str, str], place: SinkPlace, form: str, folder: Path, dying: _Dying | None) -> None:
    """Run a query from where the checkpoint is to the end of the input or the death of the process."""
    inner = find_connector(place.properties, "o", sink=True)
    made: list[Sink] = []

    def opened(declared: SinkDeclaration, opening: Opening) -> Sink:
        assert inner.sink is not None
        made.append(inner.sink(replace(declared, properties=place.properties), opening))
        return made[-1] if dying is None else _DyingSink(made[-1], dying)

    register("under-test", Connector(sink=opened), replace=True)
    emit = "changes" if form == "stream" else form
    text = f"""{_declared_stream(source)}
        CREATE SINK o WITH (connector = 'under-test', emit = '{emit}');
        INSERT INTO o {_QUERIES[form]}"""
    session = Session(batch_rows=5)
    run = workspace_of(session).assemble(
        workspace_of(session).prepare(text), checkpoint=os.fspath(folder / "kept"), every=1, end=dying is None
    )
    try:
        run.run()
    except Died:
        for sink in made:
            place.died(sink)


def _expected(form: str) -> list[Row]:
    """The answer of the query, by hand."""
    values = range(40)
    if form == "stream":
        return [(_at(v), v) for v in values]
    if form == "changes":
        return [("+", _at(v), v) for v in values] + [("-", _at(v + 5), v) for v in values]
    if form == "lifetimes":
        return [(v, _at(v), _at(v + 5)) for v in values]
    alive = [v for v in values if v % 3 < 2 and v >= 30]
    groups = [[v for v in alive if v % 7 == k] for k in range(7)]
    return [(k, len(group), max(group)) for k, group in enumerate(groups) if group]
