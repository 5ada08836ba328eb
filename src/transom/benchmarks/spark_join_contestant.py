"""One contestant in a process of its own: settings of Spark and Java count once in a process, and must not leak.

The order goes in as a JSON file and what was measured comes out as another: `python -m ..spark_join_contestant FOLDER`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from transom.benchmarks.own_process import own_process
from transom.benchmarks.spark_join_data import Cell, Measured, files_of
from transom.benchmarks.spark_join_transom import SourceKind, run_transom
from transom.core.errors import SparkError

RIVAL, TRANSOM_FILES, TRANSOM_DATAFRAME = "rival", "transom_files", "transom_dataframe"
SOURCES: Final[dict[str, SourceKind]] = {TRANSOM_FILES: "files", TRANSOM_DATAFRAME: "dataframe"}
ORDER, RESULT, LOG = "order.json", "result.json", "log.txt"
LOG_LINES: Final = 15


@dataclass(frozen=True)
class Job:
    """`source` has the files of the cell, `scratch` takes the answer (in its folder `out`) and the checkpoint."""

    cell: Cell
    source: Path
    scratch: Path


def in_own_process(kind: str, settings: Mapping[str, str], jobs: Sequence[Job], folder: Path) -> list[Measured]:
    """The jobs one after another in one new process, which ends with them."""
    folder.mkdir(parents=True)
    order = {"kind": kind, "settings": dict(settings), "jobs": [asdict(job) for job in jobs]}
    (folder / ORDER).write_text(json.dumps(order, default=str), encoding="utf-8")
    # Its Java reads a pipe that closes with it, so nothing stays behind.
    with (
        (folder / LOG).open("wb") as log,
        own_process("transom.benchmarks.spark_join_contestant", str(folder), stdout=log, stderr=log) as process,
    ):
        code = process.wait()
    if code != 0:
        lines = (folder / LOG).read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
        raise SparkError(
            f"the contestant '{kind}' ended with status {code}", remedy="it said:\n  " + "\n  ".join(lines)
        )
    told = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    return [_measured(one) for one in told]


def _measured(told: Mapping[str, Any]) -> Measured:
    return Measured(
        settings=told["settings"],
        start_s=told["start_s"],
        batch_s=tuple(told["batch_s"]),
        batch_rows=tuple(told["batch_rows"]),
        state_bytes=tuple(told["state_bytes"]),
    )


def run(kind: str, settings: Mapping[str, str], jobs: Sequence[Job]) -> list[Measured]:
    """In this process."""
    if kind == RIVAL:
        return _run_rival(settings, jobs)
    source = SOURCES[kind]
    return [run_transom(job.cell, source, job.source, job.scratch, settings) for job in jobs]


def _run_rival(settings: Mapping[str, str], jobs: Sequence[Job]) -> list[Measured]:
    from transom.runtimes.spark.bench_rivals import RivalRun, run_rival

    runs = []
    for job in jobs:
        names = [path.name for path in files_of(job.source, job.cell.batches)["a"]]
        runs.append(RivalRun(job.source, names, job.cell.window_ms, job.scratch))
    return [
        Measured(
            settings=dict(settings),
            start_s=start_s,
            batch_s=tuple(batch.seconds for batch in batches),
            batch_rows=tuple(batch.rows for batch in batches),
        )
        for start_s, batches in run_rival(settings, runs)
    ]


def main(arguments: Sequence[str]) -> int:
    folder = Path(arguments[0])
    order = json.loads((folder / ORDER).read_text(encoding="utf-8"))
    jobs = [Job(Cell(**job["cell"]), Path(job["source"]), Path(job["scratch"])) for job in order["jobs"]]
    told = [asdict(measured) for measured in run(order["kind"], order["settings"], jobs)]
    (folder / RESULT).write_text(json.dumps(told), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
