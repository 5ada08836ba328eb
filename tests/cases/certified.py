"""Certified cases: where they are, what they mean in our statements, and whether an answer agrees with one."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.cases.naming import third_columns
from transom.core.time import SECOND
from transom.plan.algebra import Aggregate, Distinct, Filter, Node, Project, ToStream
from transom.runtimes.reference.history import Bag, History, RelationHistory, Row, StreamHistory, canonical, difference

HERE: Final = Path(__file__).parent
STREAMS: Final = ("S", "T", "U")
_SET_WORDS: Final = "union|except|minus|intersect"


@dataclass(frozen=True)
class Case:
    id: str
    cql: str
    views: tuple[tuple[str, str], ...]
    inputs: dict[str, list[list[Any]]]
    net: list[tuple[int, list[tuple[list[Any], int]]]]
    end: int


def folders() -> list[Path]:
    """Where cases may be: here, in a folder that the environment names, and beside the checkout."""
    named = os.environ.get("TRANSOM_CASES")
    beside = HERE.parents[2] / "shared" / "cases"
    return [HERE, *([Path(named)] if named else []), *([beside] if beside.is_dir() else [])]


@cache
def load() -> tuple[Case, ...]:
    """Every case once, though a folder may repeat what another has."""
    texts = dict.fromkeys(
        line
        for folder in folders()
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    )
    cases: dict[str, Any] = {}
    for case in map(json.loads, texts):
        cases.setdefault(json.dumps(case, sort_keys=True), case)
    return tuple(map(_read, cases.values()))


def _read(case: dict[str, Any]) -> Case:
    views = tuple((view["schema"], view["cql"]) for view in case.get("views") or ())
    return Case(case["id"], case["cql"], views, case["inputs"], case["net"], case["t_end"])


# --- in our words ----------------------------------------------------------------------------------------------------


def statements(case: Case) -> str:
    """The case as a text of statements; the last one is the query."""
    third = third_columns([case.cql, *(cql for _, cql in case.views)])
    lines = ["SET tick = '1 SECOND'", "SET origin = '1970-01-01 00:00:00'"]
    for name in STREAMS:
        a, x = (_type(case, name, i) for i in (1, 2))
        lines.append(
            f"CREATE STREAM {name} (A {a}, {third[name]} {x}, ts TIMESTAMP INVISIBLE, WATERMARK FOR ts AS ts) "
            "WITH (connector = 'memory')"
        )
    a, e = (_type(case, "R", i) for i in (2, 3))
    lines.append(
        f"CREATE TABLE R (sign VARCHAR, A {a}, {third['R']} {e}, ts TIMESTAMP INVISIBLE, WATERMARK FOR ts AS ts) "
        "WITH (connector = 'memory', changes = 'sign')"
    )
    names = ["R"]
    for schema, cql in case.views:
        name, columns = _view(schema)
        lines.append(f"CREATE VIEW {name} ({', '.join(columns)}) AS {in_our_words(cql, names)}")
        names.append(name)
    return ";\n".join([*lines, in_our_words(case.cql, names)]) + ";"


def in_our_words(cql: str, names: list[str]) -> str:
    """A query in which a bare name of a relation is a query, and set operations of those are of bags.

    >>> in_our_words("Istream(V1 Except V2)", ["V1", "V2"])
    'Istream(SELECT * FROM V1 EXCEPT ALL SELECT * FROM V2)'
    """
    choices = "|".join(map(re.escape, names))
    bare = rf"(^|\(|\b(?:{_SET_WORDS})(?:\s+all)?\b)\s*({choices})\s*(?=$|;|\)|\b(?:{_SET_WORDS})\b)"
    written = re.sub(bare, r"\1 SELECT * FROM \2 ", cql.strip(), flags=re.IGNORECASE)
    if written == cql.strip():
        return written
    written = re.sub(rf"\b({_SET_WORDS})\b(?!\s+(?:all|distinct)\b)", _of_bags, written, flags=re.IGNORECASE)
    return re.sub(r"\s+(?=\))|(?<=\()\s+", "", re.sub(r"\s+", " ", written)).strip()


def _of_bags(word: re.Match[str]) -> str:
    name = word[1].upper()
    return f"{'EXCEPT' if name == 'MINUS' else name} ALL"


def _view(schema: str) -> tuple[str, list[str]]:
    """Name and columns of `relation V1 (A integer, B integer)`."""
    match = re.fullmatch(r"\s*(?:\w+\s+)?(\w+)\s*\((.*)\)\s*;?\s*", schema, flags=re.DOTALL)
    assert match is not None, schema
    return match[1], [column.split()[0] for column in match[2].split(",")]


def _type(case: Case, name: str, index: int) -> str:
    values = [row[index] for row in case.inputs.get(name, ()) if row[index] is not None]
    if any(isinstance(value, str) for value in values):
        return "VARCHAR"
    return "DOUBLE" if any(isinstance(value, float) for value in values) else "INTEGER"


def inputs(case: Case) -> dict[str, list[tuple[Any, ...]]]:
    """The rows in the order of the declared columns, which have the time last."""
    return {
        name.lower(): [(*values, _moment(second)) for second, *values in sorted(rows, key=lambda row: row[0])]
        for name, rows in case.inputs.items()
    }


def _moment(second: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(seconds=second)


# --- comparing -------------------------------------------------------------------------------------------------------


def disagreement(case: Case, query: Node, answer: History) -> str | None:
    """None when the answer agrees with the certified one; otherwise the first second at which it does not."""
    if isinstance(answer, RelationHistory):
        expected = RelationHistory.of_changes(_net(case))
        ours: History = RelationHistory.of((t, _rounded(bag.elements())) for t, bag in answer.points)
        if _is_global_aggregate(query):
            ours = _without_nothing(ours, expected)
        return difference(expected, ours, case.end * SECOND)
    assert isinstance(answer, StreamHistory)
    emitted = {second * SECOND: Counter({canonical(row): n for row, n in rows}) for second, rows in case.net}
    given = {t: Counter(map(canonical, _rounded(rows))) for t, rows in answer.points}
    if _is_global_aggregate(query):
        emitted, given = ({t: _something(bag) for t, bag in bags.items()} for bags in (emitted, given))
    repeats = "rstream" in case.cql.lower()
    return _compare_streams(case, emitted, given, repeats)


def _net(case: Case) -> Iterator[tuple[int, int, Row]]:
    return ((second * SECOND, n, tuple(row)) for second, rows in case.net for row, n in rows)


def _rounded(rows: Any) -> list[Row]:
    return [tuple(round(value, 6) if isinstance(value, float) else value for value in row) for row in rows]


def _compare_streams(case: Case, emitted: dict[int, Bag], given: dict[int, Bag], repeats: bool) -> str | None:
    """`repeats`: the certified RSTREAM says the snapshot every second; ours when it changed, or at a slide."""
    slides = re.search(r"\bslide\b", case.cql, flags=re.IGNORECASE) is not None
    before: Bag = Counter()
    for second in range(case.end):
        t = second * SECOND
        expected, ours = emitted.get(t, Counter()), given.pop(t, Counter())
        due = expected
        if repeats and expected == before and not (slides and ours):
            due = Counter()
        if ours != due:
            return f"the rows of second {second} differ:\n  certified: {dict(due)}\n  given:     {dict(ours)}"
        before = expected
    between = sorted(t for t, bag in given.items() if t < case.end * SECOND and bag)
    return f"rows between two seconds, at {between[0]}" if between else None


def _is_global_aggregate(query: Node) -> bool:
    while isinstance(query, ToStream | Project | Filter | Distinct):
        query = query.inputs[0]
    return isinstance(query, Aggregate) and not query.grouped


def _is_nothing(row: Row) -> bool:
    return all(value is None or value == 0 for value in row)


def _something(bag: Bag) -> Bag:
    return Counter({row: n for row, n in bag.items() if not _is_nothing(row)})


def _without_nothing(ours: History, expected: RelationHistory) -> RelationHistory:
    """Our answer with the one row of an aggregate over nothing left out where the certified answer has no row."""
    assert isinstance(ours, RelationHistory)
    instants = sorted({*ours.instants, *expected.instants})
    points = []
    for t in instants:
        bag = ours.snapshot(t)
        over_nothing = not expected.snapshot(t) and bag.total() == 1 and all(map(_is_nothing, bag))
        points.append((t, [] if over_nothing else list(bag.elements())))
    return RelationHistory.of(points)
