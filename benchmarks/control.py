"""What it takes to keep many partitions together: control bytes of a batch, and the time of the driver, simulated.

The query has two levels, and rows whose ends are open move between them. A task and a partition of each level are run
in this process and measured, and counted as often as there are of them. The input is like a DataFrame: it comes in no
order, in many small Arrow batches. Rows are no control, so there are few of them; what tasks saw of their input, ends
of open rows and how a partition is doing are.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.chart import Panel
from benchmarks.harness import Benchmark, Experiment, Experiments, Options, Outcome, Outcomes, Table, lines_of
from transom.cql.statements import parse_statements
from transom.pipeline.fragment_partition import FragmentPartition
from transom.pipeline.frames import FRAMES, STATUS, Frame, Message, pack
from transom.pipeline.layout import SINK, Layout
from transom.pipeline.packer import Packer
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.plan import plan

PARTITIONS: Final = (16, 64, 200, 400)
QUICK: Final = (4, 16)
TASK_ROWS: Final = 100_000
ARROW_ROWS: Final = 10_000
OPEN_ROWS: Final = 1_000_000
"""Of all partitions together: so many rows end in a batch."""

QUERY: Final = """
    CREATE STREAM s (ts TIMESTAMP, k BIGINT, WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH (connector = 'memory');
    SELECT n, COUNT(*) AS groups FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k) AS counts GROUP BY n
"""
_CONTROL: Final = ("seen", "slides", "ends")
_DRAWN: Final = ("seen_first", "seen", "passed_on", "statuses")
SIMULATED: Final = "simulated"


@dataclass(frozen=True)
class Traffic:
    """Bytes of a batch with as many tasks as partitions, and seconds.

    `seen_first`: what tasks saw in the batch in which time begins; `seen`: in each one after it; `passed_on`: what the
    second level is notified of it; `ends`: of a million open rows. `pack_s` is what a task takes to report all that,
    `step_s` what a partition takes to hear it, and `driver_s` what the driver does with the statuses of all partitions.
    """

    partitions: int
    seen_first: int
    seen: int
    passed_on: int
    ends: int
    statuses: int
    pack_s: float
    step_s: float
    driver_s: float


def layout_of(partitions: int) -> Layout:
    catalogue = Catalogue()
    statement = parse_statements(QUERY, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    return Layout(plan(statement.query, catalogue), catalogue, "changes", partitions, frozenset({"s"}))


def packed(
    layout: Layout, sender: int, keys: np.ndarray[Any, Any], second: int, begun: bool
) -> tuple[list[Message], float]:
    """What a task packs of rows with these keys, within a few seconds from one on; and how long telling of it takes."""
    packer = Packer(layout, sender, begun=begun)
    messages: list[Message] = []
    random = np.random.default_rng(sender)
    for at in range(0, len(keys), ARROW_ROWS):
        some = keys[at : at + ARROW_ROWS]
        times = pa.array(random.integers(second * 1_000_000, (second + 5) * 1_000_000, len(some)), pa.timestamp("us"))
        messages += packer.take("s", pa.record_batch({"ts": times, "k": pa.array(some)}))
    began = time.perf_counter()
    messages += packer.finish()
    return messages, time.perf_counter() - began


def control_bytes(messages: Iterable[Message]) -> Counter[str]:
    """By the kind of its parts, how much of the frames is control."""
    sizes: Counter[str] = Counter()
    for message in messages:
        if message.kind == FRAMES:
            for part in message.opened():
                if part.kind in _CONTROL:
                    sizes[part.kind] += len(pack([part]))
    return sizes


def measure(partitions: int, task_rows: int, open_rows: int) -> Traffic:
    layout = layout_of(partitions)
    one_key = np.zeros(task_rows, dtype=np.int64)
    first, _ = packed(layout, 0, one_key, 0, begun=False)
    later, pack_s = packed(layout, 0, one_key, 30, begun=True)
    below, above = FragmentPartition(layout, 1, 0), FragmentPartition(layout, 2, 0)
    keys = np.arange(open_rows, dtype=np.int64)
    step_s = 0.0
    sent: list[Message] = []
    for batch in range(4):  # rows are taken one batch later: the third ends what the second has opened
        begun = below.state.gates.frontier is not None
        came = _for_one(layout, keys if batch < 2 else keys[:0], 30 * batch, partitions, begun)
        began = time.perf_counter()
        going = below.step(came)
        step_s = time.perf_counter() - began
        sent = going if batch == 2 else sent
        above.step([message for message in going if (message.fragment, message.partition) == (2, 0)])
    quiet = control_bytes(going)
    driver_s, statuses = _driven(layout, [below.status(), above.status()])
    for partition in (below, above):
        partition.close()
    return Traffic(
        partitions,
        seen_first=partitions * control_bytes(first)["seen"],
        seen=partitions * control_bytes(later)["seen"],
        passed_on=quiet["seen"] + partitions * quiet["slides"],
        ends=partitions * control_bytes(sent)["ends"],
        statuses=statuses,
        pack_s=pack_s,
        step_s=step_s,
        driver_s=driver_s,
    )


def _for_one(layout: Layout, keys: np.ndarray[Any, Any], second: int, tasks: int, begun: bool) -> list[Message]:
    """What comes to the first partition: its rows from one task, and what all others saw, which is alike."""
    rows, _ = packed(layout, 0, keys, second, begun)
    some, _ = packed(layout, 1, np.zeros(100, dtype=np.int64), second, begun)
    seen = [part for message in some if message.partition == 0 for part in message.opened() if part.kind == "seen"]
    others = [
        Message(1, 0, FRAMES, pack([Frame({**part.about, "sender": sender}, part.rows) for part in seen]))
        for sender in range(1, tasks)
    ]
    return [*(message for message in rows if (message.fragment, message.partition) == (1, 0)), *others]


def _driven(layout: Layout, statuses: Sequence[Message]) -> tuple[float, int]:
    """What the driver does with what all partitions report, and how much that is."""
    from transom.runtimes.spark.statuses import Statuses

    reported = []
    for partition in range(layout.partitions):
        for message in statuses:
            (part,) = message.opened()
            about = json.loads(part.about["status"]) | {"partition": partition}
            reported.append(
                Message(SINK, partition, STATUS, pack([Frame({**part.about, "status": json.dumps(about)})]))
            )
    board = Statuses(layout, "query")
    began = time.perf_counter()
    board.take([part for message in reported for part in message.opened()])
    json.dumps(asdict(board.feedback))
    return time.perf_counter() - began, sum(len(message.blob) for message in reported)


def summary(outcomes: Outcomes) -> dict[str, Any]:
    """Of the most partitions."""
    partitions, last = outcomes[-1].cell["partitions"], outcomes[-1][SIMULATED]
    return {
        "partitions": partitions,
        "control_bytes_first_batch": last["seen_first"] + last["passed_on"] + last["statuses"],
        "control_bytes": last["seen"] + last["passed_on"] + last["statuses"],
        "bytes_an_end": round(last["ends"] / max(1, OPEN_ROWS), 1),
        "driver_ms": round(last["driver_s"] * 1000, 1),
    }


def tables(outcomes: Outcomes) -> list[Table]:
    heads = ["both", "first batch", "later batches", "second level", "10^6 ends", "statuses"]
    body = []
    for outcome in outcomes:
        figures = outcome[SIMULATED]
        sizes = [_size(figures[name]) for name in ("seen_first", "seen", "passed_on", "ends", "statuses")]
        spent = [f"{figures[name] * 1000:.1f} ms" for name in ("pack_s", "step_s", "driver_s")]
        body.append([str(outcome.cell["partitions"]), *sizes, *spent])
    title = "Bytes of a batch, and times, of as many tasks as partitions:"
    return [Table(title, [*heads, "a task", "a partition", "driver"], body)]


def panels(outcomes: Outcomes) -> list[Panel]:
    sizes = {name: [(outcome.cell["x"], outcome[SIMULATED][name] / 1e6) for outcome in outcomes] for name in _DRAWN}
    driver = lines_of(outcomes, lambda figures: 1e3 * figures["driver_s"])
    return [
        Panel("control", "partitions", "MB a batch", sizes, log_x=True, log_y=True),
        Panel("driver", "partitions", "ms a batch", driver, log_x=True),
    ]


def _size(count: int) -> str:
    """
    >>> _size(2_000_000), _size(40_000)
    ('2.0 MB', '40 KB')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1e3:.0f} KB"


def _rows(options: Options) -> tuple[int, int]:
    """Rows of a task, and rows that are open."""
    return (2_000, 2_000) if options.quick else (TASK_ROWS, OPEN_ROWS)


def experiments(options: Options) -> Experiments:
    measure(QUICK[0], 2_000, 2_000)  # so that kernels are compiled

    def simulated(partitions: int) -> list[Outcome]:
        traffic = asdict(measure(partitions, *_rows(options)))
        return [Outcome({"partitions": traffic.pop("partitions"), "x": partitions}, {SIMULATED: traffic})]

    yield Experiment(QUICK if options.quick else PARTITIONS, simulated)


def settings(options: Options) -> dict[str, int]:
    task_rows, open_rows = _rows(options)
    return {"task_rows": task_rows, "arrow_rows": ARROW_ROWS, "open_rows": open_rows}


BENCHMARK: Final = Benchmark("Control traffic", experiments, summary, tables, panels, settings)
