"""What a stateful stage is given to do its work with."""

from __future__ import annotations

from dataclasses import dataclass

from transom.connectors.connector import TaskWriter
from transom.pipeline.layout import Layout
from transom.runtimes.spark.local_shuffle import LocalShuffle
from transom.runtimes.spark.state_files import LEAST_BYTES
from transom.runtimes.spark.task_split import TaskReading


@dataclass(frozen=True)
class Hosted:
    """`run` names the run of the query, so that a worker does not confuse one with another.

    Rows of answers that have `writers` are written there, and only what these report of them goes on. `folder` is that
    of the checkpoint, if it is ours; where the query resumes from another, what partitions `begins` with is in it.
    """

    reading: TaskReading
    stage_number: int
    run: str
    writers: dict[str, TaskWriter]
    folder: str | None = None
    begins: bool = False
    least: int = LEAST_BYTES
    """Values of state that have fewer bytes are not written to files."""

    @property
    def layout(self) -> Layout:
        return self.reading.layout

    @property
    def local_shuffle(self) -> LocalShuffle:
        return self.reading.local_shuffle
