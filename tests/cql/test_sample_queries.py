"""Queries as people write them elsewhere: the spelling of the certified cases must bind as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from transom.cql.statements import bind_query, parse_statements
from transom.plan.algebra import Change, Stream, ToStream
from transom.plan.catalogue import Catalogue

CASES = Path(__file__).parents[1] / "cases"
DECLARATIONS = """
SET tick = '1 SECOND';
CREATE STREAM S (A INTEGER, B INTEGER, ts TIMESTAMP INVISIBLE, WATERMARK FOR ts AS ts);
CREATE STREAM T (A INTEGER, C INTEGER, ts TIMESTAMP INVISIBLE, WATERMARK FOR ts AS ts);
CREATE STREAM U (A INTEGER, D INTEGER, ts TIMESTAMP INVISIBLE, WATERMARK FOR ts AS ts);
CREATE TABLE R (sign VARCHAR, A INTEGER, E INTEGER, ts TIMESTAMP INVISIBLE, WATERMARK FOR ts AS ts)
  WITH (changes = 'sign');
"""


def texts() -> list[str]:
    queries = {
        json.loads(line)["cql"] for path in sorted(CASES.glob("*.jsonl")) for line in path.read_text().splitlines()
    }
    # A bare `V1 Except V2` has no SELECT; it is not part of this language.
    return sorted(text for text in queries if "elect" in text.lower())


def test_there_are_samples() -> None:
    assert len(texts()) > 100


@pytest.mark.parametrize("text", texts())
def test_samples_bind(text: str) -> None:
    catalogue = Catalogue()
    parse_statements(DECLARATIONS, catalogue)
    bound = bind_query(text, catalogue)
    word = text[: text.index("(")].lower() if text.lower().startswith(("istream", "dstream", "rstream")) else None
    assert isinstance(bound, Stream) == (word is not None)
    assert not isinstance(bound, ToStream) or bound.change is Change(word)
