"""On Spark no work is put off: EXPLAIN says so, and a run that requests it is rejected before Spark is started."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from transom import OptionError, Session

JOIN = "SELECT a.k FROM a [RANGE {0} SECONDS], b [RANGE {0} SECONDS] WHERE a.k < b.k"
QUERIES = f"{JOIN.format(2)}; {JOIN.format(5)}; SELECT a.k FROM a"
REASON = "not scheduled: on Spark each batch does all its work, and SET schedule = 'mqt' is not supported; run it"


def session_of(runtime: Any = "spark", **options: Any) -> Session:
    session = Session(runtime=runtime, **options)
    for name in "ab":
        session.stream(name, [{"t": datetime(2024, 5, 1), "k": 1}], time="t")
    return session


def test_explain_says_that_nothing_is_scheduled_and_what_to_do() -> None:
    first, second, third = session_of(schedule="mqt").explain(QUERIES).split("\n\n")
    assert f"join #7 {REASON} in this process" in first and f"join #7 {REASON}" in second
    assert third.splitlines()[-1].startswith(REASON)
    assert session_of(schedule="mqt").explain(JOIN.format(2)).splitlines()[-1].startswith(REASON)
    (alone,) = session_of(schedule="mqt").execute(f"EXPLAIN {JOIN.format(2)}")
    assert alone.text is not None and alone.text.splitlines()[-1].startswith(REASON)
    plans = json.loads(session_of(schedule="mqt").explain(QUERIES, json=True))["queries"]
    assert all(plan["schedule"].startswith(REASON) for plan in plans)
    assert "scheduled" not in session_of().explain(QUERIES)
    here = session_of("local", schedule="mqt")
    assert "on Spark" not in here.explain(QUERIES) and "scheduled" not in here.explain(JOIN.format(2))


@pytest.mark.parametrize(
    ("option", "value", "instead"),
    [("schedule", "mqt", "off"), ("overload", "shed", "block"), ("overload", "fail", "block")],
)
def test_a_run_that_would_put_work_off_is_rejected(option: str, value: str, instead: str) -> None:
    session = session_of(**{option: value})
    for start in (session.execute, session.run, session.start):
        with pytest.raises(OptionError, match=f"SET {option} = '{value}' has no use on Spark") as raised:
            start(JOIN.format(2))
        assert raised.value.remedy == (
            f"SET {option} = '{instead}', or run the queries in this process"
            " (Session without spark=.., or --runtime local)"
        )
    with pytest.raises(OptionError, match="has no use on Spark"):
        session_of().execute(f"{JOIN.format(2)}; SET {option} = '{value}'; {JOIN.format(5)}")
