"""The local shuffle: files that frames lie in between two stages, where all stages run on one machine.

Blobs of many megabytes that go from worker to worker through the JVM are copied a dozen times on the way: into rows,
through the shuffle, a sort, and sockets. On one machine a task lays its frames down in a file, which mostly never
leaves memory, and Spark carries the place of it; whoever gets it maps it. A task that is run again lays down another
file, and the shuffle knows which one counts. Files of a batch are removed when the next one is under way. On several
machines there is no such place, and Spark carries everything.
"""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyspark import TaskContext

from transom.core.errors import SparkError
from transom.pipeline.frames import FRAMES, STORED, Message

LEAST_BYTES: Final = 1 << 15
"""What is smaller is carried."""

_BATCH: Final = "streaming.sql.batchId"


def batch_number() -> int | None:
    """The number of the batch that a task belongs to; None where it is none of a streaming query."""
    context = TaskContext.get()
    number = None if context is None else context.getLocalProperty(_BATCH)
    return None if number is None else int(number)


@dataclass(frozen=True)
class LocalShuffle:
    """`folder` is None where there are several machines. It travels to the tasks, and belongs to the query.

    `memory` is one whose files are in memory alone, if there is such a place.
    """

    folder: str | None = None
    memory: str | None = None

    def lay_down(self, message: Message) -> Message:
        """What Spark is to carry: the message, or where it lies."""
        if self.folder is None or message.kind != FRAMES or message.size < LEAST_BYTES:
            return message
        try:
            path = os.path.join(self._batch(), secrets.token_hex(16))
            with open(path, "wb") as file:
                for buffer in message.buffers():
                    file.write(buffer)
        except OSError:  # a disk without room: then it is carried
            return message
        return replace(message, kind=STORED, blob=path.encode(), parts=())

    def pick_up(self, kind: int, blob: bytes) -> bytes | pa.Buffer:
        """The blob of a message that has arrived."""
        if kind != STORED:
            return blob
        try:
            with pa.memory_map(blob.decode()) as file:
                return file.read_buffer()
        except OSError as error:
            raise SparkError(
                f"frames of a batch have vanished from '{self.folder}': {error}",
                remedy="leave the folder alone while a query runs; start the query again from its checkpoint",
            ) from None

    def forget(self, batch: int) -> None:
        """Batches before this one are committed."""
        for name in os.listdir(self.folder) if self.folder is not None else ():
            if name.isdecimal() and int(name) < batch:
                shutil.rmtree(os.path.join(self.folder or "", name), ignore_errors=True)

    def cache_folder(self) -> str:
        """Where workers keep their working memory; on a cluster Spark removes it with the executor."""
        if self.folder is not None:
            return self._within("warm")
        local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
        folder = os.path.join(local or os.getcwd(), "transom")
        os.makedirs(folder, exist_ok=True)
        return folder

    def _batch(self) -> str:
        return self._within(str(batch_number() or 0))

    def _within(self, name: str) -> str:
        """A folder in ours. Of a query that has ended ours is gone, and stays so though a task still goes on."""
        folder = os.path.join(self.folder or "", name)
        with suppress(FileExistsError):
            os.mkdir(folder)
        return folder
