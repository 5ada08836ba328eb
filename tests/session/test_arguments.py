"""Arguments of any type, and a machine without memory: what comes of it is an error that a user can act on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from transom import OptionError, QueryError, Session, TransomError
from transom.core.errors import OutOfMemoryError
from transom.pipeline.part import Part

ANY: Any = Session
ROWS = [{"t": f"2024-05-01 00:00:0{i}", "k": i % 2, "a": i} for i in range(9)]


@pytest.mark.parametrize("nothing", [None, 3, b"SELECT 1", ["SELECT 1"]])
@pytest.mark.parametrize(
    "call", [Session.sql, Session.run, Session.execute, Session.start, Session.explain, Session.add]
)
def test_a_query_is_a_text(call: Callable[..., Any], nothing: object) -> None:
    with pytest.raises(QueryError, match=f"a query is a text, not {type(nothing).__name__}"):
        call(Session(), nothing)


@pytest.mark.parametrize(
    "call",
    [
        lambda session: session.table(None, ROWS),
        lambda session: session.stream(3, ROWS),
        lambda session: session.stream("s", ROWS, time=3),
        lambda session: session.stream("s", ROWS, time="t", bound=3),
        lambda session: session.stream("s", ROWS, time="t", bound=None),
        lambda session: session.stream("s", ROWS, time="t", idle="soon"),
        lambda session: session.stream("s", ROWS, time="t", heartbeat=timedelta(0)),
        lambda session: session.stream("s", ROWS, time="t", ahead=3),
        lambda session: session.stream("s", ROWS, heartbeat="1 second"),
        lambda session: session.stream("s", ROWS, ahead="1 day"),
        lambda session: session.append(None, ROWS),
        lambda session: session.start("SELECT a FROM known", checkpoint=3),
        lambda session: session.add("SELECT a FROM known", name=3),
        lambda session: ANY(runtime=3),
        lambda session: ANY(runtime="spark", cores="two"),
        lambda session: ANY(runtime="spark", cores=0),
    ],
)
def test_other_arguments_are_judged_too(call: Callable[[Session], object]) -> None:
    session = Session()
    session.table("known", [{"a": 1}])
    with pytest.raises(OptionError) as rejected:
        call(session)
    assert rejected.value.remedy


def test_without_memory_the_operator_that_keeps_most_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(batch_rows=1)
    session.stream("s", ROWS, time="t")
    whole, steps = Part.step, []

    def step(self: Part, *arguments: Any) -> Any:
        steps.append(1)
        if len(steps) == 6:
            raise MemoryError("Unable to allocate 3 TiB")
        return whole(self, *arguments)

    monkeypatch.setattr(Part, "step", step)
    with pytest.raises(OutOfMemoryError) as reported:
        session.run("SELECT k, MAX(a) AS m FROM s [RANGE 8 SECONDS] GROUP BY k")
    error: TransomError = reported.value
    assert error.what.startswith("there is no memory left; #4 aggregate ") and " of query-1 keeps most: " in error.what
    assert "windows shorter" in str(error.remedy)
