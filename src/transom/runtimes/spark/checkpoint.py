"""What a query's checkpoint says before Spark reads it: how far it came, over how many partitions, and for which
query.

Spark logs the plan of every batch before it runs (`offsets`) and that it is done afterwards (`commits`). It keeps the
number of partitions that a checkpoint began with, whatever the session says now; and so do we.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from transom.connectors.storage import read_file, storage_of
from transom.core.errors import CheckpointError
from transom.core.location import hadoop_uri, is_remote
from transom.plan.options import MOST_PARTITIONS
from transom.planner.fingerprint import of_another_plan
from transom.program.checkpoint_folder import names_in, put, read, remove
from transom.runtimes.spark.offset_log import OffsetLog
from transom.runtimes.spark.settings import PARTITIONS
from transom.runtimes.spark.worker_errors import exceptions, without_class

_PLAN: Final = "plan"
_DECISIONS: Final = "decisions.json"
_THREADS: Final = "threads"

_OF_STATE: Final = re.compile(
    r"\[(CANNOT_LOAD_STATE_STORE\.(AUTO_SNAPSHOT_REPAIR_FAILED|CANNOT_FIND_BASE_SNAPSHOT_CHECKPOINT|CANNOT_READ_\w+"
    r"|INVALID_CHECKPOINT_LINEAGE|UNEXPECTED_FILE_SIZE)|CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED|MALFORMED_LOG_FILE"
    r"|STATE_STORE_ROW_CHECKSUM_VERIFICATION_FAILED|STREAMING_CHECKPOINT_MISSING_METADATA_FILE"
    r"|STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY)\]"
)
"""Spark's names for state and logs that are lost or spoilt."""

_OF_A_FILE: Final = re.compile(
    r"Checksum error|does not exist|No such file|NoSuchFileException|EOFException|Incomplete log"
)
_NO_DAMAGE: Final = re.compile(
    r"No space left|Permission denied|Too many open files|Disk quota|Read-only file system|Input/output error",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class CheckpointProgress:
    """How many batches are done, how many have been planned; `partitions` is None where nothing has been planned."""

    done: int = 0
    planned: int = 0
    partitions: int | None = None


class QueryCheckpoint:
    """The checkpoint of one query, in a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.spark = os.path.join(folder, "spark")
        """What Spark writes."""
        self.uri = hadoop_uri(self.spark)
        """The same place for Spark, whose own paths may begin in another file system."""

    def reached(self) -> CheckpointProgress:
        with self._errors():
            planned, done = (self._batches(name) for name in ("offsets", "commits"))
            if not planned and not done:
                return CheckpointProgress()
            if not planned or (done and max(done) > max(planned)):
                raise self._damaged("batches are done that were never planned")
            last = max(planned)
            return CheckpointProgress(max(done, default=-1) + 1, last + 1, self._partitions(last))

    def offset(self, batch: int) -> dict[str, Any]:
        """Where our own source stood after a batch; it is the first of all."""
        with self._errors():
            lines = self._offset_lines(batch)
        try:
            offset: dict[str, Any] = json.loads(lines[2])
        except (IndexError, ValueError):
            raise self._damaged(f"how far batch {batch} goes cannot be read") from None
        log = OffsetLog(self.folder)
        return {**offset, "at": {name: log.whole(name, position) for name, position in offset["at"].items()}}

    def decisions(self) -> str:
        """What was decided about the plan of the batches that are there, as it was written; empty without any."""
        with self._errors():
            return (self._batches("offsets") and self._text(_DECISIONS)) or ""

    def threads(self) -> int | None:
        """Over how many partitions its only partition spreads the plan; None before the first batch."""
        with self._errors():
            if not self._batches("offsets"):
                return None
            text = self._text(_THREADS)
        if text is None:
            return 1  # it began before there was such a thing
        if not text.isdecimal() or not 1 <= int(text) <= MOST_PARTITIONS:
            raise self._damaged("how its plan is laid out cannot be read")
        return int(text)

    def claim(self, fingerprint: str, decisions: str = "[]", threads: int = 1) -> None:
        """Reject the checkpoint of another query; an empty one is this query's from now on."""
        with self._errors():
            if not is_remote(self.folder):
                os.makedirs(self.folder, exist_ok=True)
            if not self._batches("offsets"):
                for name, text in ((_DECISIONS, decisions), (_THREADS, str(threads)), (_PLAN, fingerprint)):
                    put(os.path.join(self.folder, name), text.encode())
                return
            claimed = self._text(_PLAN)
        if claimed not in (None, fingerprint):  # where there is none every partition looks at its own memory
            raise of_another_plan()

    def _text(self, name: str) -> str | None:
        data = read(os.path.join(self.folder, name))
        return None if data is None else data.decode()

    def _batches(self, log: str) -> list[int]:
        return [int(name) for name in names_in(os.path.join(self.spark, log)) if name.isdigit()]

    def _offset_lines(self, batch: int) -> list[str]:
        return read_file(os.path.join(self.spark, "offsets", str(batch))).decode().split("\n")

    def _partitions(self, batch: int) -> int:
        lines = self._offset_lines(batch)
        try:
            return int(json.loads(lines[1])["conf"][PARTITIONS])
        except (IndexError, KeyError, TypeError, ValueError):
            raise self._damaged(f"the plan of batch {batch} cannot be read") from None

    def _damaged(self, what: str) -> CheckpointError:
        return CheckpointError(
            f"the checkpoint in '{self.folder}' is damaged: {what}",
            remedy="put it back from a copy, or start with an empty checkpoint folder",
        )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, UnicodeDecodeError) as error:
            what = (isinstance(error, OSError) and error.strerror) or str(error)
            raise CheckpointError(
                f"the checkpoint in '{self.folder}' cannot be used: {what}",
                remedy="check that the folder may be read and written and that the disk has room",
            ) from None


def begun(folder: str) -> bool:
    """Whether any query with a checkpoint in the folder has planned a batch.

    If none has, rows that were laid out for one are removed: nobody has read them, and they may be those of another.
    """
    queries = [QueryCheckpoint(os.path.join(folder, name)) for name in _folders_in(folder)]
    if any(query.reached().planned for query in queries):
        return True
    for query in queries:
        rows = os.path.join(query.folder, "rows")
        for spool in _folders_in(rows):
            for name in names_in(os.path.join(rows, spool)):
                remove(os.path.join(rows, spool, name))
    return False


def _folders_in(folder: str) -> list[str]:
    if is_remote(folder):
        return [entry.name for entry in storage_of(folder).entries(folder) if entry.folder]
    return [name for name in names_in(folder) if os.path.isdir(os.path.join(folder, name))]


def damage(error: str, folder: str) -> CheckpointError | None:
    """Spark's error as one of the checkpoint, if its exceptions say that state or a file of it is lost or spoilt.

    What else the text holds says nothing: it shows the plan and the settings of the query, whatever went wrong. And
    an exception may name the checkpoint for other reasons; whoever throws it away for one of those loses good state.

    >>> text = "Job aborted\\n  at x.y\\nCaused by: java.io.FileNotFoundException: File /c/spark/state/2 does not exist"
    >>> print(damage(text, "/c"))
    the checkpoint cannot be resumed: File /c/spark/state/2 does not exist
      put it back from a copy, or start with an empty checkpoint folder
    >>> damage(text, "/d")
    """
    messages = exceptions(error)
    of_files = [line for line in messages if f"{folder}/" in line and _OF_A_FILE.search(line)]
    of_state = of_files or [line for line in messages if _OF_STATE.search(line)]
    if not of_state or any(_NO_DAMAGE.search(line) for line in messages):
        return None
    # The last cause is the first thing that went wrong.
    return CheckpointError(
        f"the checkpoint cannot be resumed: {without_class(of_state[-1])[:500]}",
        remedy="put it back from a copy, or start with an empty checkpoint folder",
    )
