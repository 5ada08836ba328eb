"""A live answer whose changes are folded is at every instant what it was."""

from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
import pytest

from tests.profile import NIGHTLY, first_of
from transom.connectors.connector import Opening, Resume
from transom.core.errors import QueryError
from transom.core.schema import CHANGE_COLUMN, TIMESTAMP
from transom.flight import answer_history
from transom.flight.answer_history import AnswerHistory
from transom.flight.select import Selected

SCHEMA = pa.schema([CHANGE_COLUMN, ("at", TIMESTAMP), ("k", pa.string()), ("v", pa.list_(pa.int64()))])
SECOND = 1_000_000


def rows(answer: AnswerHistory, at: int | None = None) -> Counter[str]:
    suffix = "" if at is None else f" AS OF '1970-01-01 00:{at // 60:02}:{at % 60:02}'"
    selected = Selected(f"SELECT * FROM a{suffix}", {"a": answer})
    return Counter(str(row) for batch in selected.batches() for row in batch.to_pylist())


@pytest.mark.parametrize("seed", first_of(0, 1, 2))
def test_folding_changes_nothing(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(answer_history, "_LEAST_FOLDED", 8)
    random = Random(seed)
    answer = AnswerHistory("a", 20 * SECOND)
    answer.open(Opening(SCHEMA, form="changes"))
    there: list[dict[str, object]] = []
    there_at: list[Counter[str]] = []
    for second in range(120):
        changes = []
        for _ in range(random.randrange(4)):
            if there and random.random() < 0.45:
                changes.append(("-", there.pop(random.randrange(len(there)))))
            else:
                there.append({"k": random.choice(["x", None]), "v": random.choice([None, [1, None], []])})
                changes.append(("+", there[-1]))
        batch = [{"change": sign, "at": second * SECOND, **row} for sign, row in changes]
        columns = (
            [
                pa.array([row[field.name] for row in batch], pa.int64() if field.name == "at" else field.type)
                for field in SCHEMA
            ]
            if batch
            else []
        )
        if batch:
            columns = [column.cast(field.type) for column, field in zip(columns, SCHEMA, strict=True)]
            answer.write(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
        answer.commit()
        there_at.append(Counter(map(str, there)))
    assert answer._base_at > 50 * SECOND, "it was folded"
    assert rows(answer) == there_at[-1]
    for second in range(100, 120, 1 if NIGHTLY else 5):
        assert rows(answer, second) == there_at[second]
    with pytest.raises(Exception, match="is known from"):
        rows(answer, 10)


def test_what_was_not_committed_is_not_seen() -> None:
    answer = AnswerHistory("a")
    answer.open(Opening(SCHEMA, form="changes"))
    batch = pa.RecordBatch.from_arrays(
        [pa.array(["+"]).cast(CHANGE_COLUMN.type), pa.array([0]).cast(TIMESTAMP), pa.array(["x"]), pa.array([[1]])],
        schema=SCHEMA,
    )
    answer.write(batch)
    assert rows(answer) == Counter()
    answer.forget()
    answer.commit()
    assert rows(answer) == Counter()
    answer.write(batch)
    answer.commit()
    assert rows(answer) == Counter(["{'k': 'x', 'v': [1]}"])


def test_an_answer_that_is_not_known_as_a_whole_is_not_given() -> None:
    answer = AnswerHistory("a")
    answer.open(Opening(SCHEMA, Resume(1, 1, None), form="changes"))
    with pytest.raises(QueryError, match="resumed from a checkpoint"):
        rows(answer)
