"""The folders of a query on Spark: its checkpoint, what this machine alone is to know, and rows on their way."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pyspark.sql import SparkSession

from transom.core.location import is_remote
from transom.runtimes.spark.checkpoint import CheckpointProgress, QueryCheckpoint
from transom.runtimes.spark.local_shuffle import LocalShuffle
from transom.runtimes.spark.log_names import STATE
from transom.runtimes.spark.temporary import TemporaryFolder, forget, temporary_folder
from transom.state.scratch import Scratch, in_memory


class QueryFolders:
    """Made when they are first needed. `older` are those of the queries that this one resumes from."""

    def __init__(self, spark: SparkSession, checkpoint: str | None, older: Sequence[TemporaryFolder]) -> None:
        self._spark = spark
        self.checkpoint = checkpoint
        self._older = list(older)
        self._scratch: TemporaryFolder | None = None
        """What is the checkpoint of a query without one."""
        self._nearby: Scratch | None = None
        self._messages: Scratch | None = None
        self._memory: Scratch | None = None
        self._local_shuffle = LocalShuffle()

    @property
    def kept(self) -> str:
        """Where the checkpoint is, of a query without one as well."""
        if self.checkpoint is not None:
            return self.checkpoint
        if self._scratch is None:
            self._scratch = temporary_folder(self._spark)
        return self._scratch.path

    @property
    def near(self) -> str:
        """The folder for what the source on this machine is to know: to look into a storage all the time costs."""
        if not is_remote(self.kept):
            return self.kept
        if self._nearby is None:
            self._nearby = Scratch("query")
        return self._nearby.path

    @property
    def status_file(self) -> str | None:
        """None without a checkpoint: nobody asks later."""
        return None if self.checkpoint is None else os.path.join(self.checkpoint, "status.json")

    def decisions(self) -> str:
        """How the query was planned when it began; nothing if it begins."""
        return "" if self.checkpoint is None else QueryCheckpoint(self.checkpoint).decisions()

    def threads(self) -> int | None:
        """Over how many partitions a plan in one task was spread when it began."""
        return None if self.checkpoint is None else QueryCheckpoint(self.checkpoint).threads()

    def reached(self) -> CheckpointProgress:
        """How far it had come where it begins."""
        return CheckpointProgress() if self.checkpoint is None else QueryCheckpoint(self.checkpoint).reached()

    def local_shuffle(self) -> LocalShuffle:
        """For frames between stages on one machine."""
        if self._messages is None:
            self._messages, memory = Scratch("messages"), in_memory()
            self._memory = None if memory is None else Scratch("memory", memory)
            self._local_shuffle = LocalShuffle(self._messages.path, None if self._memory is None else self._memory.path)
        return self._local_shuffle

    def left(self) -> list[TemporaryFolder]:
        """The folders that whoever resumes from this query takes over."""
        return [*self._older, *([] if self._scratch is None else [self._scratch])]

    def forget_all_but(self, folder: str | None) -> None:
        """Remove the folders from which nobody resumes any more; rows that were prefetched stay."""
        for scratch in self._older:
            if scratch.path != folder:
                forget(scratch, ("spark", "memories", STATE))
        for held in filter(None, (self._nearby, self._messages, self._memory)):
            held.remove()

    def drop(self) -> None:
        """The query has not begun after all."""
        if self._scratch is not None:
            self._scratch.remove()

    def remove(self) -> None:
        """All but the checkpoint that the user has given."""
        for folder in self._older:
            folder.remove()
        self.drop()
        for held in filter(None, (self._nearby, self._messages, self._memory)):
            held.remove()
        self._scratch = self._nearby = None
