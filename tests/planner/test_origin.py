"""What of a query an operator comes from, for whoever shows the two side by side."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from transom import Session
from transom.planner.fingerprint import fingerprint
from transom.session import workspace_of

JOIN = """
    SELECT r.room, MAX(r.celsius) AS hot
    FROM readings [RANGE 20 SECONDS] AS r JOIN smoke [RANGE 1 MINUTE] s ON r.room = s.room
    WHERE r.celsius > 20 AND s.density > 0.1
    GROUP BY r.room HAVING MAX(celsius) >= 25
"""

CASES = {
    JOIN: {
        "StreamScan": [["readings"], ["smoke"]],
        "StreamFilter": [["r.celsius > 20"], ["s.density > 0.1"]],
        "Window": [["[RANGE 20 SECONDS]"], ["[RANGE 1 MINUTE]"]],
        "JoinAggregate": [["MAX(r.celsius)", "r.room = s.room", "r.room"]],
        "Filter": [["MAX(celsius) >= 25"]],
        "Project": [["r.room, MAX(r.celsius) AS hot"]],
    },
    "ISTREAM(SELECT r.room FROM readings [NOW] r, smoke [NOW] s WHERE r.room = s.room AND r.celsius * 2 > s.density)": {
        "Join": [["r.room = s.room", "r.celsius * 2 > s.density"]],
        "ToStream": [["ISTREAM"]],
    },
    "SELECT DISTINCT room FROM readings [ROWS 9]\n  UNION\nSELECT room FROM smoke [NOW]": {
        "SetOperation": [["UNION"]],
        "Distinct": [["room"], ["UNION"]],
    },
    "SELECT room FROM readings [NOW] ORDER BY celsius DESC LIMIT 3": {"TopN": [["ORDER BY celsius DESC LIMIT 3"]]},
    "SELECT room FROM readings [NOW] QUALIFY row_number() OVER (PARTITION BY room ORDER BY celsius) = 1": {
        "TopN": [["row_number() OVER (PARTITION BY room ORDER BY celsius)"]],
    },
    "SELECT room, SUM(celsius) OVER (PARTITION BY room) AS sum FROM readings [NOW]": {
        "Aggregate": [["SUM(celsius) OVER (PARTITION BY room)"]],
    },
    "SELECT room, window_end, COUNT(*) FROM TUMBLE(readings, at, 1 MINUTE) GROUP BY room, window_end": {
        "WindowAggregate": [["COUNT(*)", "room", "window_end"]],
    },
    "SELECT room FROM readings [NOW] r WHERE EXISTS (SELECT 1 FROM smoke [NOW] x WHERE x.room = r.room)": {
        "SemiJoin": [["x.room = r.room"]],
    },
    "SELECT 'ä😀' AS e, COUNT(*) AS n FROM readings [NOW] WHERE room <> 'ü😀'": {"StreamFilter": [["room <> 'ü😀'"]]},
}  # fmt: skip


@pytest.fixture
def session() -> Any:
    with Session() as session:
        session.stream("readings", [{"at": "2024-05-01 10:00:00", "room": "x", "celsius": 1.5}], time="at")
        session.stream("smoke", [{"at": "2024-05-01 10:00:00", "room": "x", "density": 1.5}], time="at")
        yield session


@pytest.mark.parametrize("query", CASES)
def test_operators_know_what_they_come_from(session: Session, query: str) -> None:
    text = f"SET tick = '1 SECOND';\n\n  {query};\nSELECT 1"
    plan: Any = session.explain(text).plans[0]
    pieces_of: dict[str, list[list[str]]] = {}
    for operator in plan["operators"]:
        pieces = []
        for piece in operator["written"]:
            start, stop = piece["at"]
            assert plan["statement"][start:stop] == piece["text"]
            pieces.append(piece["text"])
        pieces_of.setdefault(operator["operator"], []).append(pieces)
    for kind, expected in CASES[query].items():
        assert sorted(map(sorted, (each for each in pieces_of[kind] if each))) == sorted(map(sorted, expected)), kind


def test_what_comes_from_a_view_is_in_another_text(session: Session) -> None:
    session.execute("CREATE VIEW hot AS SELECT room, celsius FROM readings [NOW] WHERE celsius > 30")
    plan: Any = session.explain("SELECT room FROM hot WHERE room = 'x'").plans[0]
    at = {piece["text"]: piece["at"] for operator in plan["operators"] for piece in operator["written"]}
    assert at["celsius > 30"] is None and at["room = 'x'"] == [27, 37]


def test_a_plan_is_the_same_however_it_is_written(session: Session) -> None:
    """Neither its name, nor what is sent to other processes, has the text."""
    spread, in_one_line = (
        prepared.root
        for text in (JOIN, " ".join(JOIN.split()).replace(" >= ", ">="))
        for prepared in workspace_of(session).prepare(text)
    )
    assert spread is not None and in_one_line is not None
    assert spread == in_one_line and fingerprint(list(spread.walk())) == fingerprint(list(in_one_line.walk()))
    assert b"HAVING" not in pickle.dumps(spread) and pickle.loads(pickle.dumps(spread)) == spread
