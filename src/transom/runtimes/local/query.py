"""A standing query in this process: what it is called, where its answer goes, and how it is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from transom.connectors.connector import Sink
from transom.pipeline.driver import Pipeline
from transom.program.run import QuerySpec
from transom.program.status import Status
from transom.runtimes.local.output import QueryOutput

if TYPE_CHECKING:
    from transom.runtimes.local.job import LocalJob


class LocalQuery:
    """A query of a job. One that is alone in its job can be stepped, run, saved and restored by it."""

    def __init__(self, spec: QuerySpec, job: LocalJob, output: QueryOutput) -> None:
        self.name = spec.name
        self.job = job
        self.output = output
        self.last: Status | None = None
        """How it was doing when it left the others."""

    @property
    def sink(self) -> Sink:
        """Where the answer goes."""
        return self.output.sink

    @property
    def in_memory(self) -> bool:
        """Whether the answer can be had from `table`."""
        return self.sink.collected() is not None

    @property
    def finished(self) -> bool:
        """All input has been read to its end, and everything that follows from it is out."""
        return self.job.finished

    def table(self) -> pa.Table:
        """The answer so far, of a query whose answer stays in memory."""
        self.output.write_latest()
        table = self.sink.collected()
        assert table is not None
        return table

    def status(self, lately: float = 0.0) -> Status:
        """How it is doing; any thread may ask, and waits for a step that is under way, but not for a source."""
        return self.last or self.job.status(self, lately)

    # --- alone -------------------------------------------------------------------------------------------------------

    @property
    def pipeline(self) -> Pipeline:
        """What takes its rows in."""
        return self.job.engine.subplan

    def step(self) -> bool:
        """Read one batch and go on; False when there is nothing to do: for good, or for now."""
        return self.job.step()

    def run(self) -> None:
        """Run to the end of the input, which must have one."""
        try:
            while self.step():
                pass
            self.close()
        except BaseException:
            self.abort()
            raise

    def snapshot(self) -> bytes:
        """Everything that another process needs to go on; what was written until now is shown."""
        data = self.job.prepare_checkpoint()
        self.job.commit()
        return data

    def restore(self, data: bytes) -> None:
        """Go on where `snapshot` was taken, by the same query over the same inputs."""
        self.job.restore(data)

    def close(self) -> None:
        """Everything that was written is seen."""
        self.job.close()

    def abort(self) -> None:
        """What was written since it was last shown is forgotten."""
        self.job.abort()
