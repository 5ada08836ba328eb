"""The contestants of NEXMark, each in a process of its own, which has its session, warm, before the first query."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from benchmarks.nexmark.data import COLUMNS, SIDE
from benchmarks.nexmark.queries import QUERIES, Query
from benchmarks.processes import Contestant, guarded, serving
from transom.session import Session, workspace_of

LOCAL, SPARK, OWN, FLINK = "local", "spark", "own", "flink"

Run = Callable[[Query, Path, Path], None]


def started(kind: str, settings: Mapping[str, str], python: str = "") -> AbstractContextManager[Contestant]:
    """The contestant, ready: its jobs are a query, the folder of the events, and one for all that is written.

    `python` is the interpreter that has Flink.
    """
    if kind == FLINK:
        program = str(Path(__file__).with_name("flink.py"))
        return guarded([python, program, json.dumps(dict(settings))], FLINK)
    return serving("benchmarks.nexmark.contestants:opened", kind, dict(settings))


# --- in its process --------------------------------------------------------------------------------------------------


def declarations(source: Path, reads: Sequence[str]) -> str:
    """The streams of the model as Transom reads them."""
    texts = []
    for name in reads:
        columns = ", ".join(f"{column} {kind}" for column, kind in COLUMNS[name].items())
        kind, time_column = ("TABLE", "") if name == SIDE else ("STREAM", ", WATERMARK FOR date_time AS date_time")
        path = str(source / name).replace("'", "''")
        index = f"connector = 'files', path = '{path}', format = 'parquet'"
        texts.append(f"CREATE {kind} {name} ({columns}{time_column}) WITH ({index});")
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
            workspace_of(session).assemble(workspace_of(session).prepare(text), checkpoint=checkpoint, end=True).run()

    return run


def _transom_on_spark(settings: Mapping[str, str]) -> Run:
    from benchmarks.spark_session import session_with

    of_spark = {name: value for name, value in settings.items() if name.startswith("spark.")}
    spark, _ = session_with(of_spark)
    return _transom({name: value for name, value in settings.items() if name not in of_spark}, spark)


def _own(settings: Mapping[str, str]) -> Run:
    from benchmarks.nexmark.spark_own import RIVAL, run_query
    from benchmarks.spark_join.rival import open_session

    spark = open_session({**RIVAL, **settings}, "nexmark")
    return lambda query, source, out: run_query(spark, query.name, query.keys, COLUMNS, source, out)


KINDS: Final[dict[str, Callable[[Mapping[str, str]], Run]]] = {LOCAL: _transom, SPARK: _transom_on_spark, OWN: _own}


def opened(kind: str, settings: Mapping[str, str]) -> Callable[[str, str, str], None]:
    run = KINDS[kind](settings)
    return lambda query, source, out: run(QUERIES[query], Path(source), Path(out))
