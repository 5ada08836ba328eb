"""Joins of many inputs: the experiment of paper 3, for streams and windows; costly probes; and full rate.

| part | rows | what changes |
| --- | --- | --- |
| 1 | one by one, as in the paper | streams, windows, columns |
| 2 | one by one, with probes that cost many hand-overs between threads | streams |
| 3 | in large batches | matches a probe |

Contestants are the tactics of `SET multiway`, and in part 3 a chain of joins of two. Figures are medians of runs in
which the contestants take turns, measured after their windows were full. All contestants of a cell must come to the
same results. The parts can be run apart; `--read` shows what was written down before.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from transom.benchmarks.chart import write_panels
from transom.benchmarks.machine import machine, usable_cores
from transom.benchmarks.multiway_contestant import AUTO, CHAIN, TACTICS
from transom.benchmarks.multiway_data import ROUND, VALUES, Cell
from transom.benchmarks.multiway_rates import measure_floor, measure_rates
from transom.benchmarks.multiway_report import panels, summary, tables
from transom.benchmarks.multiway_run import Effort, measure_latency
from transom.core.errors import SourceError
from transom.kernels.crew import measured_handover

PARTS: Final = (1, 2, 3)
CONTESTANTS: Final = (*TACTICS, AUTO)
PER_SECOND: Final = 1_000_000 // ROUND
MILLISECOND: Final = 1_000


@dataclass(frozen=True)
class Size:
    """The cells; windows of part 1 are seconds, those of part 3 rows of a stream."""

    streams: tuple[int, ...]
    windows: tuple[int, ...]
    window_streams: int
    other_streams: int  # with all columns, and with changes
    paced: tuple[int, ...]
    probe_streams: tuple[int, ...]
    candidates: int
    rate_streams: int
    rate_window: int
    batch: int
    latency: Effort  # of part 1: rounds of 50 milliseconds
    in_real_time: Effort
    probes: Effort  # of part 2
    rates: Effort  # of part 3: batches
    floor: Effort
    matches: tuple[int, ...] = (1, 2)
    values: int = 2  # of the key in part 2


FULL = Size(
    streams=(5, 10, 15, 20),
    windows=(1, 2, 3, 4, 5),
    window_streams=10,
    other_streams=20,
    paced=(10, 20),
    probe_streams=(4, 8, 12),
    candidates=2_000,
    rate_streams=5,
    rate_window=10_000,
    batch=2_000,
    latency=Effort(runs=3, rounds=400, warm=20),
    in_real_time=Effort(runs=1, rounds=100, warm=20),
    probes=Effort(runs=2, rounds=60, warm=10),
    rates=Effort(runs=5, rounds=8, warm=3),
    floor=Effort(runs=3, rounds=400, warm=50),
)
QUICK = Size(
    streams=(5, 20),
    windows=(1, 2),
    window_streams=5,
    other_streams=20,
    paced=(5,),
    probe_streams=(4,),
    candidates=500,
    rate_streams=5,
    rate_window=2_000,
    batch=1_000,
    latency=Effort(runs=1, rounds=60, warm=5),
    in_real_time=Effort(runs=1, rounds=20, warm=5),
    probes=Effort(runs=1, rounds=20, warm=5),
    rates=Effort(runs=1, rounds=3, warm=1),
    floor=Effort(runs=1, rounds=60, warm=5),
)


def main(arguments: argparse.Namespace) -> int:
    if arguments.read:
        told = together([_read(path) for path in arguments.read])
    else:
        size = QUICK if arguments.quick else FULL
        started = time.perf_counter()
        cells = list(measured(size, arguments.part or PARTS))
        _say(f"took {time.perf_counter() - started:.0f} s")
        told = {
            "machine": {**machine(), "handover_us": round(measured_handover(), 2)},
            "settings": asdict(size),
            "cells": cells,
            "summary": summary(cells),
        }
    if arguments.plot:
        drawn = panels(told["cells"])
        write_panels(arguments.plot, "Joins of many inputs", "", "", drawn, logarithmic=True, ticks_at_points=True)
    print(json.dumps(told, indent=2) if arguments.json else tables(told))
    return 0


def measured(size: Size, parts: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The cells of these parts, one after the other."""
    cores = usable_cores()
    if 1 in parts:
        for cell in paper_cells(size):
            _say(f"{cell.label()} ..")
            yield measure_latency(cell, CONTESTANTS, size.latency, cores)
        for streams in size.paced:
            cell = Cell(1, "paced", streams, streams, PER_SECOND, ROUND)
            _say(f"{cell.label()} ..")
            yield measure_latency(cell, CONTESTANTS, size.in_real_time, cores, paced=True)
    if 2 in parts:
        handover = measured_handover()
        for streams in size.probe_streams:
            window = size.candidates * size.values
            cell = Cell(2, "probes", streams, streams, window, streams * MILLISECOND, "few", size.values)
            _say(f"{cell.label()} ..")
            found = measure_latency(cell, CONTESTANTS, size.probes, cores)
            price = found["tactics"]["mjoin"]["join_us"] / (streams - 1)
            told = {"probe_us": round(price, 1), "handover_us": round(handover, 2)}
            yield {**found, **told, "probe_over_handover": round(price / handover, 1)}
    if 3 in parts:
        for matches in size.matches:
            cell = rate_cell(size, matches)
            _say(f"{cell.label()} ..")
            yield measure_rates(cell, (*CONTESTANTS, CHAIN), size.rates, size.batch)
        _say("part 3: a tree over its probes ..")
        yield measure_floor(rate_cell(size, 1), size.floor, size.rates, size.batch)


def paper_cells(size: Size) -> Iterator[Cell]:
    for streams in size.streams:
        yield Cell(1, "streams", streams, streams, PER_SECOND, ROUND)
    for seconds in size.windows:
        if seconds > 1 or size.window_streams not in size.streams:
            yield Cell(1, "window", seconds, size.window_streams, seconds * PER_SECOND, ROUND)
    others = size.other_streams
    yield Cell(1, "columns", others, others, PER_SECOND, ROUND, columns=len(VALUES))
    yield Cell(1, "changes", others, others, PER_SECOND, ROUND, emit="changes")


def rate_cell(size: Size, matches: int) -> Cell:
    streams, window = size.rate_streams, size.rate_window
    return Cell(
        3, "rate", matches, streams, window, streams * MILLISECOND, "drawn", max(window // matches, 1), timed=True
    )


def together(files: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Results that were written down apart, as one."""
    cells = [cell for told in files for cell in told["cells"]]
    return {"machines": [told["machine"] for told in files], "cells": cells, "summary": summary(cells)}


def _read(path: str) -> dict[str, Any]:
    try:
        told = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SourceError(f"the results in '{path}' cannot be read: {error}", remedy="name a file of --json") from error
    if not isinstance(told, dict) or not {"machine", "cells"} <= told.keys():
        raise SourceError(f"there are no results in '{path}'", remedy="name a file of transom bench multiway --json")
    return told


def _say(what: str) -> None:
    print(f"multiway: {what}", file=sys.stderr, flush=True)
