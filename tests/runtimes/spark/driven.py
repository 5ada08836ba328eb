"""A driver in a process of its own, to be killed: `python -m tests.runtimes.spark.driven order.json`.

It runs the queries of a text one after the other, each with a checkpoint, and waits where it is reported to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow.parquet

from tests.run_on_spark import spark_query
from tests.runtimes.spark.pauses import Pause, PausingQuery
from transom.connectors.open import open_files, open_source
from transom.connectors.sink_folder import MARK
from transom.plan.catalogue import Catalogue
from transom.program.planned import Planned, read_program

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Driven:
    """What a driver is to do. `folder` gets checkpoints, rejected rows, and what it reports of its batches."""

    folder: str
    text: str
    master: str | None = None
    pause: Pause | None = None
    paused: str = ""
    """The name of the query that pauses."""
    before: str = ""
    """The text of other queries, which run first."""

    def start(self) -> subprocess.Popen[bytes]:
        Path(self.folder, "batches").mkdir(parents=True, exist_ok=True)
        order = Path(self.folder, "order.json")
        order.write_text(json.dumps(asdict(self)))
        variables = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT), str(ROOT / "src")]))
        with open(Path(self.folder, "said"), "ab") as said:
            command = [sys.executable, "-m", "tests.runtimes.spark.driven", str(order)]
            return subprocess.Popen(command, cwd=ROOT, env=variables, stdout=said, stderr=said)

    def said(self) -> str:
        return Path(self.folder, "said").read_text()

    def batches(self, name: str = "") -> int:
        """How many batches, of all queries or of one, have been shown by all drivers so far."""
        return len(list(Path(self.folder, "batches").glob(f"{name}*")))


def standing(text: str) -> list[Planned]:
    return [query for query in read_program(text, Catalogue()) if query.standing]


def shown(folder: Path) -> dict[str, list[str]]:
    """What a reader finds in the folders `out` and `dead_letters`, by file; the rows of a file are sorted."""
    rows_in: dict[str, list[str]] = {}
    for kind in ("out", "side"):
        for path in sorted((folder / kind).rglob("*")):
            parts = path.relative_to(folder / kind).parts
            if path.is_dir() or any(part.startswith(".") for part in parts):
                continue
            if path.suffix == ".parquet":
                rows = [json.dumps(row, default=str) for row in pyarrow.parquet.read_table(path).to_pylist()]
            else:
                rows = path.read_text().splitlines()
            rows_in["/".join((kind, *parts))] = sorted(rows)
    return rows_in


def leftovers(folder: Path) -> list[str]:
    """Hidden files and folders among the answers and the rejected rows, but for the marks of their folders."""
    return [str(path) for kind in ("out", "side") for path in (folder / kind).rglob(".*") if path.name != MARK]


def main(order: str) -> None:
    from transom.runtimes.spark import launch

    given = json.loads(Path(order).read_text())
    pause = None if given["pause"] is None else Pause(**given["pause"])
    spark = launch.start(2, master=given["master"], lasting=False)
    folder = Path(given["folder"])
    for planned in standing(given["before"]) + standing(given["text"]):
        assert planned.sink is not None
        name = planned.sink.name
        query = spark_query(
            planned,
            spark,
            open_source,
            open_files(planned.sink.properties),
            PausingQuery,
            open_dead_letters=open_files({"path": f"{folder}/side/{name}/", "format": "jsonl"}),
            emit=planned.sink.emit,
            checkpoint=f"{folder}/checkpoint/{name}",
            name=name,
            pause=pause if name == given["paused"] else None,
            batches=f"{folder}/batches",
        )
        query.run()
        print(f"{name} ran", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
