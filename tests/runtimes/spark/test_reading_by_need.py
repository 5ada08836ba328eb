"""How far a batch goes on Spark: by what the batches before it told."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from transom.connectors.memory import MemorySink
from transom.connectors.open import open_source
from transom.plan.catalogue import Catalogue
from transom.program.alignment import Pace
from transom.program.planned import read_program
from transom.runtimes.spark.feedback import Feedback
from transom.runtimes.spark.query import SparkQuery

FAST_AND_SLOW = """
SET batch_rows = 200;
CREATE STREAM fast (k INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts)
    WITH (connector = 'generator', rate = '1000', rows = '2000');
CREATE STREAM slow (k INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts)
    WITH (connector = 'generator', rate = '200', rows = '400');
ISTREAM(SELECT f.k FROM fast [NOW] AS f, slow [NOW] AS s WHERE f.ts = s.ts)
"""


def test_a_slow_stream_does_not_run_ahead_of_the_others(spark: SparkSession) -> None:
    peak: list[int] = []

    def watch(query: SparkQuery) -> None:
        peak.append(max(one.waiting for one in query.status().inputs))

    (one,) = [one for one in read_program(FAST_AND_SLOW, Catalogue()) if one.standing]
    query = SparkQuery(one, spark, open_source, lambda schema, parts: MemorySink(schema), watch=watch)
    query.run()
    assert query.table().num_rows == 400
    assert max(peak) <= 200, "where each was read as fast as it could be, 320 waited"
    assert len(peak) <= 12


def test_what_the_source_is_told_is_read_back(tmp_path: Path) -> None:
    told = Feedback({"a": Pace(5, 3, 1, 0.25), "b": Pace()}, 17, True)
    told.write(str(tmp_path))
    assert Feedback.read(str(tmp_path)) == told


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"paces": {"a": 1}}', '{"paces": {"a": {"rows": "x"}}}', "\udc80"])
def test_a_spoilt_file_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "feedback.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert Feedback.read(str(tmp_path)) == Feedback()
