"""Saved states with a number changed and the seal made anew, taken over and run on: a program for a child process.

`python -m tests.state.resealed SEED TRIALS [PLAN ..]` prints the number of each trial before it begins, and then what
became of it: "rejected" by a CheckpointError, "ran", or the name of an error of the steps after it. What a wrong number
may do at worst is to end the process, or to keep it busy for ever, which only another process can tell.
"""

from __future__ import annotations

import faulthandler
import json
import random
import sys
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from tests.run_locally import Rows, batch_of
from transom.core.errors import CheckpointError
from transom.cql.statements import parse_statements
from transom.pipeline.driver import Pipeline
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition
from transom.plan.options import partitions_of
from transom.planner.plan import plan
from transom.state import codec

_STREAMS = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, k INTEGER, s VARCHAR, x DOUBLE, WATERMARK FOR ts AS ts);" for name in "abc"
)
_TWO = "SELECT a.k, b.s FROM a [{}] AS a, b [{}] AS b WHERE a.{} = b.{}"
_THREE = "SELECT a.k, b.s, c.x FROM a [{0}] AS a, b [{0}] AS b, c [{0}] AS c WHERE a.k = b.k AND b.s = c.s"
_TOTALS = (
    "SELECT a.k, COUNT(*) AS n, SUM(b.x) AS x, MIN(b.s) AS least, MAX(a.x) AS most"
    " FROM a [{0}] AS a, b [{0}] AS b WHERE a.k = b.k GROUP BY a.k"
)
_SUMS = (
    "SELECT a.k, COUNT(*) AS n, SUM(b.x) AS x, AVG(a.x) AS m"
    " FROM a [{0}] AS a, b [{0}] AS b WHERE a.k = b.k GROUP BY a.k"
)
PLANS: dict[str, str] = {
    "join of rings": _TWO.format("RANGE 9 SECONDS", "RANGE 7 SECONDS", "k", "k"),
    "join of rings by text": _TWO.format("RANGE 9 SECONDS", "ROWS 7", "s", "s"),
    "join of open rows": _TWO.format("ROWS 5", "PARTITION BY k ROWS 3", "k", "k"),
    "lazy join": "SET join = 'lazy_hash'; " + _TWO.format("RANGE 9 SECONDS", "PARTITION BY k ROWS 2", "s", "s"),
    "mjoin": "SET multiway = 'mjoin'; " + _THREE.format("RANGE 8 SECONDS"),
    "mjoin of open rows": "SET multiway = 'mjoin'; " + _THREE.format("PARTITION BY k ROWS 3"),
    "join tree": "SET multiway = 'tree'; " + _THREE.format("RANGE 8 SECONDS"),
    "join that changes": "SET multiway = 'adaptive'; SET adapt = 'shuffle'; " + _THREE.format("RANGE 8 SECONDS"),
    "join that changes, of open rows": "SET multiway = 'adaptive'; SET adapt = 'shuffle'; "
    + _THREE.format("PARTITION BY k ROWS 3"),
    "parallel tree": "SET multiway = 'parallel_tree'; " + _THREE.format("RANGE 8 SECONDS"),
    "parallel mjoin": "SET multiway = 'parallel_mjoin'; " + _THREE.format("RANGE 8 SECONDS"),
    "pc": "SET joinagg = 'pc'; " + _TOTALS.format("RANGE 8 SECONDS"),
    "ic": "SET joinagg = 'ic'; " + _SUMS.format("RANGE 8 SECONDS"),
    "tc": "SET joinagg = 'tc'; " + _TOTALS.format("RANGE 8 SECONDS"),
    "factorised": "SET joinagg = 'factorised'; " + _TOTALS.format("RANGE 8 SECONDS"),
    "adaptive": "SET joinagg = 'adaptive'; SET adapt = 'shuffle'; " + _TOTALS.format("RANGE 8 SECONDS"),
    "aggregate": "SELECT s, COUNT(*) AS n, SUM(x) AS x, MIN(x) AS l, MAX(s) AS m, COUNT(DISTINCT k) AS d"
    " FROM a [RANGE 9 SECONDS] GROUP BY s",
    "aggregate of open rows": "SELECT COUNT(*) AS n, MIN(k) AS l, SUM(DISTINCT k) AS d FROM a [PARTITION BY s ROWS 3]",
    "windows": "SELECT k FROM a [ROWS 4 RANGE 6 SECONDS]"
    " UNION ALL SELECT k FROM b [PARTITION BY s ROWS 2 RANGE 9 SECONDS]"
    " UNION ALL SELECT k FROM c [ROWS 6 SLIDE 2]",
    "distinct": "SELECT DISTINCT k, s FROM a [ROWS 9]",
    "open rows in partitions": "SET partitions = 3; SELECT k, COUNT(*) AS n FROM a [ROWS 9] GROUP BY k",
    "except": "SELECT k FROM a [RANGE 9 SECONDS] EXCEPT ALL SELECT k FROM b [ROWS 5]",
    "istream": "ISTREAM(SELECT s FROM a [RANGE 6 SECONDS] INTERSECT SELECT s FROM b [RANGE 9 SECONDS])",
    "rstream": "RSTREAM(SELECT s, k FROM a [RANGE 6 SECONDS SLIDE 2 SECONDS])",
    "slide join": "SET slide_join = 'incremental';"
    " RSTREAM(SELECT a.k, b.s FROM a [RANGE 6 SECONDS SLIDE 2 SECONDS] AS a,"
    " b [RANGE 6 SECONDS SLIDE 2 SECONDS] AS b WHERE a.k = b.k)",
    "negative join": "SET lifetimes = 'negative'; " + _TWO.format("RANGE 9 SECONDS", "ROWS 7", "s", "s"),
    "negative counted join": "SET lifetimes = 'negative';"
    " SELECT a.k, b.s FROM (SELECT DISTINCT k FROM a [ROWS 6]) AS a,"
    " b [PARTITION BY k ROWS 2] AS b WHERE a.k = b.k",
    "negative aggregate": "SET lifetimes = 'negative'; SELECT s, SUM(x) AS x, MIN(k) AS l, COUNT(DISTINCT k) AS d"
    " FROM a [ROWS 8] GROUP BY s",
    "negative except": "SET lifetimes = 'negative'; SELECT k FROM a [ROWS 9] EXCEPT SELECT k FROM b [RANGE 5 SECONDS]",
}

_ODD = (-(2**63), -(2**40), -3, -2, -1, 0, 1, 2, 3, 63, 64, 65, 127, 128, 1 << 20, 1 << 40, 2**63 - 1)


def rows_of(drawn: random.Random, first: int, count: int) -> Rows:
    begin = datetime(2024, 5, 1)
    texts = ("x", "yy", "z" * 20, "")
    return [
        (begin + timedelta(seconds=first + i // 3), drawn.randrange(4), drawn.choice(texts), drawn.random())
        for i in range(count)
    ]


class Trial:
    """A plan that has taken some rows, and takes more."""

    def __init__(self, text: str, emit: str) -> None:
        self.catalogue = Catalogue()
        statement = parse_statements(_STREAMS + text, self.catalogue)[-1]
        assert isinstance(statement, QueryStatement)
        self.operator = plan(statement.query, self.catalogue)
        self.emit = emit

    def pipeline(self) -> Pipeline:
        return Pipeline(self.operator, self.catalogue, self.emit, partitions=partitions_of(self.catalogue))

    def feed(self, pipeline: Pipeline, first: int, rounds: int, *, end: bool) -> None:
        drawn = random.Random(first)
        for number in range(rounds):
            for name in pipeline.inputs:
                definition = self.catalogue.relations[name]
                assert isinstance(definition, StreamDefinition)
                pipeline.push(name, batch_of(definition.columns, rows_of(drawn, first + 4 * number, 12)))
            pipeline.advance()
        if end:
            for name in pipeline.inputs:
                pipeline.end(name)
            pipeline.advance()

    def saved(self) -> bytes:
        with closing(self.pipeline()) as pipeline:
            self.feed(pipeline, 0, 6, end=False)
            return pipeline.snapshot()

    def taken_over(self, data: bytes) -> str:
        with closing(self.pipeline()) as pipeline:
            try:
                pipeline.restore(data)
            except CheckpointError:
                return "refused"
            try:
                self.feed(pipeline, 24, 3, end=True)
                pipeline.drain()
            except Exception as error:
                return type(error).__name__
        return "ran"


def resealed(data: bytes, drawn: random.Random) -> bytes:
    """The state with a number or two changed, in an array or in what describes it, under a seal of its own."""
    tree, buffers = codec.unsealed(data)
    blobs = [bytearray(buffer) for buffer in buffers]
    arrays: list[dict[str, Any]] = []
    numbers: list[dict[str, Any]] = []
    _collect(tree, arrays, numbers)
    full = [array for array in arrays if blobs[array["at"]] and array["array"] == "<i8"]
    for _ in range(drawn.choice((1, 1, 1, 2, 5))):
        if drawn.random() < 0.1:
            drawn.choice(numbers)["v"] = drawn.choice(_ODD)
            continue
        blob = blobs[drawn.choice(full)["at"]]
        values = np.frombuffer(blob, dtype=np.int64)
        at = drawn.randrange(len(values))
        near = int((values[at : at + 1] + drawn.choice((-1, 1)))[0])
        values[at] = drawn.choice((*_ODD, near, near, near, int(drawn.choice(values.tolist()))))
    return b"".join(codec.sealed(json.dumps(tree).encode(), map(bytes, blobs)))


def _collect(tree: Any, arrays: list[dict[str, Any]], numbers: list[dict[str, Any]]) -> None:
    if isinstance(tree, dict):
        if "array" in tree:
            arrays.append(tree)
        elif type(tree.get("v")) is int:
            numbers.append(tree)
        for part in tree.values():
            _collect(part, arrays, numbers)
    elif isinstance(tree, list):
        for part in tree:
            _collect(part, arrays, numbers)


def main(seed: int, trials: int, names: list[str]) -> None:
    faulthandler.enable()
    for name in names or PLANS:
        emit = "lifetimes" if seed % 2 and "stream" not in name and name != "slide join" else "changes"
        trial = Trial(PLANS[name], emit)
        data = trial.saved()
        if trial.taken_over(data) != "ran":
            raise AssertionError(f"a state of '{name}' that nobody touched is not taken over")
        for number in range(trials):
            print(f"{name}, {seed}, {number}:", end=" ", flush=True)
            print(trial.taken_over(resealed(data, random.Random(f"{name} {seed} {number}"))), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
