"""A connector of somebody else on Spark: tasks read its splits, and a batch that is run again is committed once."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import SparkSession

from tests.connectors.ledger import answers
from tests.connectors.test_third_party import TEXT, write
from transom.session import Session, workspace_of


def test_splits_are_read_in_tasks_and_a_repeated_batch_is_there_once(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "north", *range(0, 20, 2))
    write(tmp_path, "south", *range(1, 20, 2))
    for end in (False, True):
        session = Session(spark=spark, batch_rows=8)
        planned = workspace_of(session).prepare(TEXT.format(folder=tmp_path))
        workspace_of(session).assemble(planned, checkpoint=str(tmp_path / "kept"), end=end).run()
        if not end:
            commits = tmp_path / "kept" / "o" / "spark" / "commits"
            done = sorted((file for file in commits.iterdir() if file.name.isdigit()), key=lambda file: int(file.name))
            assert len(done) > 1 and answers(f"{tmp_path}/answers.db")
            os.unlink(done[-1])  # as if the driver had died before the batch was settled
            (commits / f".{done[-1].name}.crc").unlink(missing_ok=True)
    assert answers(f"{tmp_path}/answers.db") == list(range(20))
    readers = {int(file.name.removeprefix("read-by-")): file.read_text().split() for file in tmp_path.glob("read-by-*")}
    assert readers and os.getpid() not in readers
    assert {partition for read in readers.values() for partition in read} == {"north", "south"}
