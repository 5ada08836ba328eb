"""Queries that stop at a chosen moment of a chosen batch, once, so that something can be killed just then."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark import TaskContext, cloudpickle

from transom.pipeline.frames import FILES
from transom.pipeline.layout import SINK
from transom.runtimes.spark.host import Host
from transom.runtimes.spark.hosted import Hosted
from transom.runtimes.spark.labels import Labels
from transom.runtimes.spark.query import SparkQuery

# Workers do not find the tests; so what is here travels to them as it is.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Pause:
    """`moment`: "before" or "after" a task's step, or when a file of the answer is "written"; in the driver "gathered",
    when all tasks are through, or "shown". The pid of who waits is in `mark`."""

    mark: str
    moment: str
    batch: int
    stage_number: int = 1

    def take(self, moment: str, batch: int, stage_number: int = 1) -> None:
        """Waits for the end that is coming, the first time that anybody is there."""
        if (moment, batch, stage_number) != (self.moment, self.batch, self.stage_number):
            return
        own = f"{self.mark}.{os.getpid()}"
        Path(own).write_text(str(os.getpid()))
        try:
            os.link(own, self.mark)
        except FileExistsError:
            return
        started_by = os.getppid()
        while os.getppid() == started_by:
            time.sleep(0.01)

    @property
    def pid(self) -> int | None:
        mark = Path(self.mark)
        return int(mark.read_text()) if mark.exists() else None


class PausingHost(Host):
    """Tasks that pause."""

    pause: Pause

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
        batch = int(TaskContext.get().getLocalProperty("streaming.sql.batchId"))  # type: ignore[union-attr, arg-type]
        hosted: Hosted = cloudpickle.loads(self._sealed)
        if Labels(hosted.layout).partition_id(hosted.stage_number, int(key[0]))[0] == SINK:
            yield from super().handleInputRows(key, rows, timerValues)
            return
        self.pause.take("before", batch, hosted.stage_number)
        frames = list(super().handleInputRows(key, rows, timerValues))
        self.pause.take("after", batch, hosted.stage_number)
        if any((frame["kind"] == FILES).any() for frame in frames):
            self.pause.take("written", batch, hosted.stage_number)
        yield from frames


class PausingQuery(SparkQuery):
    """`batches` is a folder with a file for every batch that was shown."""

    def __init__(self, *arguments: Any, pause: Pause | None = None, batches: str | None = None, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._pause, self._batches = pause, batches

    def messages(self, *arguments: Any) -> Any:
        if self._pause is None:
            return super().messages(*arguments)
        pausing = type("PausingHost", (PausingHost,), {"pause": self._pause})
        in_files = partial(Hosted, least=1)  # however small state is
        with (
            patch("transom.runtimes.spark.dataframe_stages.Host", pausing),
            patch("transom.runtimes.spark.dataframe_stages.Hosted", in_files),
        ):
            return super().messages(*arguments)

    def _take(self, messages: pa.Table, number: int) -> None:
        if self._pause is not None:
            self._pause.take("gathered", number)
        super()._take(messages, number)
        if self._batches is not None:
            Path(self._batches, f"{self.name}-{number}-{os.getpid()}").touch()
        if self._pause is not None:
            self._pause.take("shown", number)
