"""Functions that a program brings: what they see, what they may give, and where they are the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from tests.runtimes_under_test import RUNTIMES
from transom import CheckpointError, EvaluationError, OptionError, QueryError, Session, TransomError
from transom.plan.catalogue import QueryStatement
from transom.runtimes.reference.history import difference
from transom.session import workspace_of

ROWS = [{"ts": f"2024-05-01 10:00:{i:02}", "k": i % 3, "v": None if i % 4 == 3 else i * 1.5} for i in range(12)]
COMPARED = ("reference", "local", "local_restarted", "partitions", "buckets_restarted", "negative")


def session_with(*, seen: list[int] | None = None, nulls: Any = "propagate", version: str = "1") -> Session:
    session = Session(tick="1 second")
    session.stream("s", ROWS, time="ts")

    @session.function("DOUBLE", "BIGINT", returns="DOUBLE", nulls=nulls, version=version)
    def scaled(values: pa.Array, by: pa.Array) -> pa.Array:
        if seen is not None:
            seen.append(len(values))
        return pc.fill_null(pc.multiply(values, by.cast(pa.float64())), -1.0)

    return session


def values(session: Session, text: str) -> list[Any]:
    return [row["x"] for row in session.run(text).to_pylist()]


def test_rows_with_null_are_not_seen_unless_it_is_to_be_called_for_them() -> None:
    seen: list[int] = []
    text = "ISTREAM(SELECT scaled(v, k) AS x FROM s)"
    expected = [None if row["v"] is None else row["v"] * row["k"] for row in ROWS]  # type: ignore[operator]
    assert values(session_with(seen=seen), text) == expected
    assert sum(seen) == 9
    seen.clear()
    assert values(session_with(seen=seen, nulls="called"), text) == [-1.0 if x is None else x for x in expected]
    assert sum(seen) == 12


def test_arrays_and_structs_are_seen_as_arrow_has_them() -> None:
    session = session_with()

    @session.function("BIGINT[]", returns="BIGINT")
    def elements(values: pa.Array) -> pa.Array:
        return pc.list_value_length(values).cast(pa.int64())

    @session.function("BIGINT", returns=pa.list_(pa.int64()))
    def twice(values: pa.Array) -> pa.Array:
        return pa.array([[value, value] for value in values.to_pylist()], pa.list_(pa.int64()))

    text = "SELECT {0} AS x FROM s [ROWS 1] WHERE k = 2 AND v < 4"
    assert values(session, text.format("elements([k, k, 7])")) == [3] * 2
    assert values(session, text.format("elements(twice(k))")) == [2] * 2
    assert values(session, text.format("twice(k)")) == [[2, 2]] * 2
    assert values(session, text.format("twice(NULL)")) == [None] * 2


def test_instants_have_their_zone() -> None:
    session = session_with()

    @session.function("TIMESTAMPTZ", returns="TIMESTAMPTZ")
    def later(values: pa.Array) -> pa.Array:
        assert values.type == pa.timestamp("us", "UTC")
        return pc.add(values, pa.scalar(timedelta(hours=1)))

    text = "SELECT later(TIMESTAMPTZ '2024-05-01 10:00:00+02') = TIMESTAMPTZ '2024-05-01 09:00:00+00' AS x"
    assert values(session, text) == [True]


def test_constants_stand_for_all_rows_and_wider_types_are_taken() -> None:
    session = session_with()
    query = "SELECT {0} AS x FROM s [ROWS 1] WHERE k = 1 AND v < 2"
    for written, expected in (
        ("scaled(v, 2)", 3.0),
        ("scaled(1, 2)", 2.0),
        ("scaled(0.5, k)", 0.5),
        ("scaled(k, 7::SMALLINT)", 7.0),
        ("scaled(NULL, 2)", None),
        ("SCALED(scaled(v, 2), 2)", 6.0),
        ("CASE WHEN v > 9 THEN scaled(v, 2) ELSE 4 END", 4.0),
    ):
        assert values(session, query.format(written))[0] == expected, written
    for wrong, said in (
        ("scaled(v)", "'scaled' does not take 1 argument"),
        ("scaled('a', 1)", "'scaled' cannot take VARCHAR, INTEGER"),
        ("scaled(v, v)", "'scaled' cannot take DOUBLE, DOUBLE"),
        ("scaled(DISTINCT v, 1)", "'scaled' is no aggregate"),
    ):
        with pytest.raises(QueryError, match=said):
            session.run(query.format(wrong))


def test_half_a_character_is_found_where_it_is_given() -> None:
    session = session_with()

    @session.function("BIGINT", returns="VARCHAR")
    def half(values: pa.Array) -> pa.Array:
        return pa.array([b"\xff"] * len(values), pa.binary()).view(pa.string())

    with pytest.raises(EvaluationError, match="the Python function 'half' gave what is no VARCHAR"):
        session.run("SELECT COUNT(half(k)) FROM s")


def _reversed(values: pa.Array) -> pa.Array:
    return pa.array([value if value is None else value[::-1] for value in values.to_pylist()], values.type)


def test_it_stands_wherever_an_expression_does_and_agrees_with_the_reference() -> None:
    """On every runtime, with restarts and in partitions; the reference calls it in DuckDB."""
    session = session_with()
    session.function("BIGINT[]", returns="BIGINT[]", name="reversed")(_reversed)
    inputs = {"s": [(f"2024-05-01 10:00:{i:02}", row["k"], row["v"]) for i, row in enumerate(ROWS)]}
    typed = {"s": [(pa.scalar(ts).cast(pa.timestamp("us")).as_py(), k, v) for ts, k, v in inputs["s"]]}
    for text in (
        "SELECT k, SUM(scaled(v, 2)) AS x FROM s [RANGE 4 SECONDS] GROUP BY k HAVING MAX(scaled(v, k)) > 1",
        "SELECT a.k FROM s [ROWS 4] AS a JOIN s [ROWS 3] AS b ON scaled(a.v, 2) = scaled(b.v, 2) WHERE scaled(a.v, 1) > 2",  # noqa: E501
        "ISTREAM(SELECT scaled(v, k) AS x, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY scaled(v, k))",
        "SELECT reversed([k, 7]) AS x, reversed([k, 7])[1] AS y FROM s [ROWS 3]",
        "SELECT k FROM s [ROWS 3] WHERE EXISTS (SELECT 1 FROM s [ROWS 2] AS t WHERE t.k = s.k AND scaled(t.v, 1) > 3)",
    ):
        (planned,) = workspace_of(session).prepare(text)
        assert isinstance(planned.statement, QueryStatement)
        answers = {name: RUNTIMES[name](planned.statement.query, planned.catalogue, typed) for name in COMPARED}
        for name in COMPARED:
            assert difference(answers["reference"], answers[name]) is None, (name, text)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (lambda a: a.cast(pa.float64()), "gave values of type double, and declares BIGINT"),
        (lambda a: a.slice(1), "gave 1 values for 2 rows"),
        (lambda a: a.to_pylist(), "gave a list where an Arrow array is expected"),
        (lambda a: a.no_such_thing, "failed: AttributeError"),
    ],
)
def test_what_is_wrong_with_a_function_is_said_by_its_name(body: Callable[..., object], said: str) -> None:
    session = Session()
    session.table("t", [{"a": 1}, {"a": 2}])
    session.function("BIGINT", returns="BIGINT", name="Wrong")(body)
    with pytest.raises(EvaluationError, match=f"the Python function 'wrong' {said}"):
        session.run("SELECT wrong(a) FROM t")
    with pytest.raises(EvaluationError, match=f"the Python function 'wrong' {said.replace('2 rows', '1 rows').replace('1 values', '0 values')}"):  # fmt: skip # noqa: E501
        session.run("SELECT wrong(1)")


def test_it_does_not_pass_a_condition_that_stays_before_it() -> None:
    session = Session()
    rows = [{"ts": "2024-05-01 10:00:00", "y": y, "f": f} for y, f in ((3, 1.0), (9, -1.0))]
    session.stream("b", rows, time="ts")

    @session.function("BIGINT", returns="BIGINT")
    def up_to_five(numbers: pa.Array) -> pa.Array:
        if pc.any(pc.greater(numbers, 5)).as_py():
            raise ValueError("not for these")
        return numbers

    distinct = "SELECT DISTINCT y, f FROM b [RANGE 1 HOUR]"
    assert values(session, f"ISTREAM(SELECT y AS x FROM ({distinct}) WHERE 1 / f > 0 AND up_to_five(y) = 3)") == [3]


def test_values_that_no_column_can_have_are_found_at_once() -> None:
    session = Session()
    session.table("t", [{"a": 1}])
    session.function("BIGINT", returns="DATE", name="far")(lambda a: pa.array([10_000_000], pa.date32()))
    session.function("BIGINT", returns="DATE", name="empty")(lambda a: pa.nulls(len(a)))
    session.function("BIGINT", returns="VARCHAR", name="cut")(lambda a: pa.chunked_array([pa.array(["x"])]))
    with pytest.raises(EvaluationError, match="'far' gave a DATE beyond the years 1 to 9999"):
        session.run("SELECT far(a) FROM t")
    row = session.run("SELECT empty(a) AS e, cut(a) AS c FROM t", emit="latest").to_pylist()
    assert row == [{"e": None, "c": "x"}]


def test_types_are_given_or_annotated() -> None:
    session = Session()
    session.table("t", [{"a": 1, "b": "x"}])

    @session.function()
    def joined(a: Annotated[pa.Array, "INT"], b: Annotated[pa.Array, pa.string()]) -> Annotated[pa.Array, "TEXT"]:
        return pc.binary_join_element_wise(b, a.cast(pa.string()), "-")

    assert session.run("SELECT joined(1, b) AS x FROM t", emit="latest").to_pylist() == [{"x": "x-1"}]
    shown = {row["function"]: row["written"] for row in session.execute("SHOW FUNCTIONS")[0].to_pylist()}
    assert shown["joined"] == "joined(INTEGER, VARCHAR)"

    def plain(a: pa.Array) -> pa.Array:
        return a

    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({}, "nothing says which types the function 'plain' takes and gives"),
        ({"types": ("BLOB",)}, "there is no type 'BLOB'"),
        ({"types": (pa.binary(),)}, "which no SQL type is"),
        ({"types": ("JSON",)}, "which is text to Python"),
        ({"types": ("BIGINT",), "name": "two words"}, "cannot be called 'two words'"),
        ({"types": ("BIGINT",), "name": "abs"}, "'abs' is a function of the language"),
        ({"types": ("BIGINT",), "name": "now"}, "'now' is a function of the language"),
        ({"types": ("BIGINT",), "name": "joined"}, "there is a function 'joined' already"),
        ({"types": ("BIGINT",), "nulls": "no"}, "nulls cannot be 'no'"),
        ({"types": ("BIGINT",), "version": 1}, "the version of the function 'plain' is a text"),
    )
    for given, said in wrong:
        options: dict[str, Any] = {"returns": "BIGINT"} if given else {}
        options |= {key: value for key, value in given.items() if key != "types"}
        with pytest.raises(TransomError, match=said) as caught:
            session.function(*given.get("types", ()), **options)(plain)
        assert isinstance(caught.value, OptionError | QueryError)


def test_one_that_is_replaced_is_another_for_queries_from_then_on() -> None:
    session = Session()
    session.table("t", [{"a": 1}])
    session.function("BIGINT", returns="BIGINT", name="f")(lambda a: a)
    before = session.sql("SELECT f(a) AS x FROM t", emit="latest")
    session.function("BIGINT", returns="BIGINT", name="f", replace=True)(lambda a: pc.negate(a))
    assert session.run("SELECT f(a) AS x FROM t", emit="latest").to_pylist() == [{"x": -1}]
    assert before.to_pylist() == [{"x": 1}]


def test_explain_names_it() -> None:
    session = session_with(version="2.0")
    text = str(session.explain("SELECT k FROM s [ROWS 3] WHERE scaled(v, 1) > 3"))
    assert "filter: (scaled(v, 1) > 3.0)" in text or "scaled(v, 1)" in text
    assert text.endswith("function scaled(DOUBLE, BIGINT) DOUBLE, version '2.0': Python, an array at a time")


STANDING = "SELECT k, SUM(scaled(v, 2)) AS x FROM s [ROWS 4] GROUP BY k"


def test_a_checkpoint_knows_its_version(tmp_path: Path) -> None:
    folder = str(tmp_path)
    session_with().execute(STANDING, checkpoint=folder)
    session_with().execute(STANDING, checkpoint=folder)
    said = "with version of the function 'scaled' '1' for query '.*', and it is '2' now"
    with pytest.raises(CheckpointError, match=said):
        session_with(version="2").execute(STANDING, checkpoint=folder)
    without = Session(tick="1 second")
    without.stream("s", ROWS, time="ts")
    with pytest.raises(QueryError, match="there is no function 'scaled'"):
        without.execute(STANDING, checkpoint=folder)


def test_on_spark_it_travels_to_the_workers(spark: SparkSession) -> None:
    factor = 3.0

    def filled(session: Session) -> Session:
        session.stream("s", ROWS, time="ts")

        @session.function("DOUBLE", returns="DOUBLE")
        def tripled(numbers: pa.Array) -> pa.Array:
            if pc.any(pc.greater(numbers, 100.0)).as_py():
                raise ValueError("too hot")
            return pc.multiply(numbers, factor)

        return session

    here, there = filled(Session()), filled(Session(spark=spark))
    text = "SELECT k, SUM(tripled(v)) AS x FROM s [ROWS 4] WHERE tripled(v) > 2 GROUP BY k"
    expected = here.run(text).to_pylist()
    assert expected and there.run(text).to_pylist() == expected
    with pytest.raises(EvaluationError, match="the Python function 'tripled' failed: ValueError: too hot"):
        there.run("SELECT tripled(v + 100) FROM s [ROWS 4]")
