"""A process whose queries come and go, and which kills itself in the middle of it: `python -m .. FOLDER RUNTIME EVENT`.

An event is a batch, and the moments before and after a file of the checkpoint is written; -1 is none of them.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Literal

from transom import Session
from transom.program import checkpoint_folder

NOON = datetime(2024, 5, 1, 12)
ROWS = 240
LONG = 300.0
SHARED = "ISTREAM(SELECT a.k, a.x, b.x AS y FROM a [RANGE {0} SECONDS], b [RANGE {0} SECONDS] WHERE a.k = b.k)"
QUERIES = {
    "near": SHARED.format(3),
    "far": SHARED.format(20),
    "counted": "SELECT k, COUNT(*) AS n, MAX(x) AS x FROM a [RANGE 9 SECONDS] GROUP BY k",
    "comes": SHARED.format(11),
    "alone": "SELECT k, MIN(x) AS x FROM b [RANGE 5 SECONDS] GROUP BY k",
}
AT_FIRST = ("near", "far", "counted")
"""The others come to them."""


def rows(name: str) -> list[dict[str, Any]]:
    random = Random(name)
    return [
        {"ts": NOON + timedelta(seconds=i / 4), "k": random.randint(1, 5), "x": random.randint(1, 999)}
        for i in range(ROWS)
    ]


def main(folder: Path, runtime: Literal["local", "spark"], event: int) -> None:
    events, written = count(), checkpoint_folder.put

    def happens(*_: Any) -> None:
        if next(events) == event:
            os.kill(os.getpid(), signal.SIGKILL)

    def put(path: str, data: bytes, durable: bool = True) -> None:
        happens()
        written(path, data, durable)
        happens()

    checkpoint_folder.put = put
    checkpoint = folder / "kept"
    again = checkpoint.exists()
    with Session(runtime=runtime, batch_rows=12, sharing="on") as session:
        session.on_progress(happens)
        for name in "ab":
            session.stream(name, rows(name)[: ROWS if again else ROWS // 3], time="ts")
        for name in QUERIES:
            path = folder / f"{name}.csv"
            session.execute(f"CREATE SINK {name} WITH (connector = 'files', path = '{path}', emit = 'changes')")
        with session.together(checkpoint=str(checkpoint), follow=True):
            for name in QUERIES if again else AT_FIRST:
                session.add(f"INSERT INTO {name} {QUERIES[name]}", name=name)
        if not again:
            assert session.queries[0].await_progress(NOON + timedelta(seconds=9), timeout=LONG)
            for name in QUERIES.keys() - set(AT_FIRST):
                session.add(f"INSERT INTO {name} {QUERIES[name]}", name=name)
            for name in "ab":
                session.append(name, rows(name)[ROWS // 3 :])
        for query in session.queries:
            assert query.await_progress(rows("a")[-2]["ts"], timeout=LONG)


if __name__ == "__main__":
    main(Path(sys.argv[1]), "spark" if sys.argv[2] == "spark" else "local", int(sys.argv[3]))
