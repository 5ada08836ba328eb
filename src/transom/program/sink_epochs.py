"""A sink over the epochs of a run in this process, whose number is that of its checkpoints.

Whoever runs the query prepares the epoch, writes the checkpoint with what that gave, and commits. After a restart the
epoch that the checkpoint counts is committed once more, which changes nothing where it was before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from transom.connectors.connector import Opening, OpenSink, Resume, Sink

Saved = dict[str, Any]


class SinkEpochs:
    """The sink is opened when it is first needed, as `opening` says of its rows."""

    def __init__(self, open_sink: OpenSink, opening: Callable[[], Opening]) -> None:
        self._open_sink = open_sink
        self._opening = opening
        self._sink: Sink | None = None
        self._epoch = 0
        self._resume: Resume | None = None
        self._snapshot: pa.RecordBatch | None = None
        self._prepared: Saved | None = None
        self._pending = False
        """Whether anything came since the last commit."""

    @property
    def sink(self) -> Sink:
        return self.open()

    def open(self) -> Sink:
        if self._sink is None:
            self._sink = self._open_sink(replace(self._opening(), resume=self._resume))
            if self._snapshot is not None:  # of the epoch that is committed again; few sinks hold on to it
                self._sink.replace(self._snapshot)
            if self._resume is not None:
                self._sink.commit(self._epoch - 1, self._resume.token)
        return self._sink

    @property
    def held_bytes(self) -> int:
        return 0 if self._sink is None else self._sink.held_bytes

    def write(self, rows: pa.RecordBatch) -> None:
        self._begin()
        self.sink.write(rows)

    def replace(self, rows: pa.RecordBatch) -> None:
        self._begin()
        self.sink.replace(rows)

    def _begin(self) -> None:
        if self._prepared is not None:  # and never committed: what comes is of the next epoch
            self.commit()
        self._pending = True

    def prepare(self) -> Saved:
        """What a checkpoint keeps of the epoch, which ends here."""
        if self._prepared is None:
            self._prepared = {"epoch": self._epoch, "token": self.sink.prepare(self._epoch)}
        return self._prepared

    def commit(self) -> None:
        """What was written until now is seen. An epoch that no checkpoint counts takes no number for nothing."""
        if self._prepared is None and not self._pending:
            return
        token = self.prepare()["token"]
        self.sink.commit(self._epoch, token)
        self._epoch += 1
        self._prepared, self._pending = None, False

    def restore(self, saved: Saved | None, snapshot: pa.RecordBatch | None = None) -> None:
        """Go on behind the epoch that a checkpoint keeps, with its snapshot; None: it knows none."""
        self.abort()
        self._sink, self._prepared, self._pending = None, None, False
        self._epoch = 0 if saved is None else int(saved["epoch"]) + 1
        self._resume = None if saved is None else Resume(self._epoch, self._epoch, saved["token"])
        self._snapshot = snapshot

    def abort(self) -> None:
        if self._sink is not None:
            self._sink.abort(self._epoch)

    def close(self) -> None:
        self.commit()
        self.sink.close()
