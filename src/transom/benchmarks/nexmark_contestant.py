"""A contestant of NEXMark in a process of its own, which has its session, warm, before the first query.

Jobs come as lines of JSON on its input and are answered on its output, so that all are timed from outside and alike:
`python -m ..nexmark_contestant KIND SETTINGS`. The parent's half is `Running`; a job is answered in `serve`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from transom.benchmarks.nexmark_data import COLUMNS, SIDE
from transom.benchmarks.nexmark_queries import QUERIES, Query
from transom.benchmarks.own_process import own_process, own_program
from transom.benchmarks.process_meter import session_cpu_seconds
from transom.core.errors import SourceError, TransomError
from transom.session import Session

LOCAL, SPARK, OWN, FLINK = "local", "spark", "own", "flink"
ANSWER: Final = "nexmark-answer "
"""Begins a line of the protocol: whatever else a contestant prints is no answer."""
LOG_LINES: Final = 15

Run = Callable[[Query, Path, Path], None]


@dataclass(frozen=True)
class Measured:
    """What one query over one folder took, and why it failed if it did."""

    wall_s: float
    cpu_s: float
    failure: str = ""


class Running:
    """A contestant that waits for jobs."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log
        self._hear()

    def run(self, query: str, source: Path, out: Path) -> Measured:
        """Reads the events below `source`; the answer and all else that is written is below `out`."""
        assert self._process.stdin is not None
        cpu, began = session_cpu_seconds(self._process.pid), time.perf_counter()
        self._process.stdin.write(json.dumps({"query": query, "source": str(source), "out": str(out)}) + "\n")
        self._process.stdin.flush()
        answer = self._hear()
        wall_s = time.perf_counter() - began
        return Measured(wall_s, session_cpu_seconds(self._process.pid) - cpu, answer.get("failure", ""))

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                answer: dict[str, Any] = json.loads(line.removeprefix(ANSWER))
                return answer
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
        raise SourceError(
            f"a contestant of NEXMark ended with status {self._process.wait()}",
            remedy="it said:\n  " + "\n  ".join(lines),
        )


@contextmanager
def running(kind: str, settings: Mapping[str, str], folder: Path, python: str = "") -> Iterator[Running]:
    """The contestant, ready; `python` is the interpreter that has Flink."""
    folder.mkdir(parents=True)
    path = folder / "log.txt"
    with path.open("wb") as log:
        if kind == FLINK:
            program = str(Path(__file__).with_name("nexmark_flink.py"))
            process = own_program(
                [python, program, json.dumps(dict(settings))], subprocess.PIPE, subprocess.PIPE, stderr=log
            )
        else:
            arguments = ("transom.benchmarks.nexmark_contestant", kind, json.dumps(dict(settings)))
            process = own_process(*arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        with process as started:
            yield Running(started, path)


# --- in its process --------------------------------------------------------------------------------------------------


def declarations(source: Path, reads: Sequence[str]) -> str:
    """The streams of the model as Transom reads them."""
    texts = []
    for name in reads:
        columns = ", ".join(f"{column} {kind}" for column, kind in COLUMNS[name].items())
        kind, time_column = ("TABLE", "") if name == SIDE else ("STREAM", ", WATERMARK FOR date_time AS date_time")
        path = str(source / name).replace("'", "''")
        place = f"connector = 'files', path = '{path}', format = 'parquet'"
        texts.append(f"CREATE {kind} {name} ({columns}{time_column}) WITH ({place});")
    return "\n".join(texts)


def question(query: Query, out: Path, emit: str) -> str:
    path = str(out / "out").replace("'", "''")
    sink = f"CREATE SINK answer WITH (connector = 'files', path = '{path}', format = 'parquet', emit = '{emit}');"
    return f"{sink}\nINSERT INTO answer {query.cql};"


def _transom(settings: Mapping[str, str], spark: Any = None) -> Run:
    """`settings` are options of SET, and `emit`: how an answer that changes is written."""
    options: dict[str, Any] = dict(settings)
    emit = options.pop("emit")

    def run(query: Query, source: Path, out: Path) -> None:
        checkpoint = None if spark is None else str(out / "checkpoint")
        with Session(runtime="local" if spark is None else "spark", spark=spark, **options) as session:
            text = declarations(source, query.reads) + question(query, out, emit)
            session.assemble(session.prepare(text), checkpoint=checkpoint, end=True).run()

    return run


def _transom_on_spark(settings: Mapping[str, str]) -> Run:
    from transom.runtimes.spark.bench_transom import session_with

    of_spark = {name: value for name, value in settings.items() if name.startswith("spark.")}
    spark, _ = session_with(of_spark, lasting=False)
    return _transom({name: value for name, value in settings.items() if name not in of_spark}, spark)


def _own(settings: Mapping[str, str]) -> Run:
    from transom.runtimes.spark.bench_nexmark import open_session, run_query

    spark = open_session(settings)
    return lambda query, source, out: run_query(spark, query.name, query.keys, COLUMNS, source, out)


KINDS: Final[dict[str, Callable[[Mapping[str, str]], Run]]] = {LOCAL: _transom, SPARK: _transom_on_spark, OWN: _own}


def serve(run: Run, jobs: Iterator[str]) -> None:
    _tell({})
    for line in jobs:
        job = json.loads(line)
        try:
            run(QUERIES[job["query"]], Path(job["source"]), Path(job["out"]))
        except TransomError as error:
            _tell({"failure": str(error)})
        else:
            _tell({})


def _tell(answer: dict[str, str]) -> None:
    print(ANSWER + json.dumps(answer), flush=True)


def main(arguments: Sequence[str]) -> int:
    kind, settings = arguments
    serve(KINDS[kind](json.loads(settings)), iter(sys.stdin))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
