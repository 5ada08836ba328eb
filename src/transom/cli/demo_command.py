"""`transom demo`: a burning building. A day of readings is made up as files, and a standing query raises the alarms."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from transom.cli.demo_day import FLOORS, ROOMS, write_day
from transom.cli.notices import compiling_announced, say_where
from transom.cli.query_file import UsageError
from transom.cli.summary import summary
from transom.connectors.connector import Sink
from transom.program.planned import Planned
from transom.session import Session, workspace_of
from transom.state.scratch import Scratch

QUERY: Final = Path(__file__).with_name("building.cql")

_CHART_WIDTH: Final = 60


class Alarms(Sink):
    """A sink that prints alarms as they rise and end, and remembers them."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, datetime, datetime]] = []
        self._burning: dict[str, datetime] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            at, floor, room = row["at"], row["floor"], row["room"]
            if row["change"] == "+":
                self._burning[room] = at
                print(f"  {at:%H:%M:%S}  floor {floor}, room {room}: FIRE")
            else:
                start = self._burning.pop(room)
                self.ended.append((room, start, at))
                print(f"  {at:%H:%M:%S}  floor {floor}, room {room}: over, after {_minutes(at - start)}")
        sys.stdout.flush()

    def commit(self, epoch: int, token: Any) -> None: ...


def main(options: argparse.Namespace) -> int:
    with _folder(options.keep) as folder, Session(runtime=options.runtime, cores=options.cores) as session:
        print(f"A day in a building of {FLOORS} floors with {ROOMS} rooms each. When does what burn?", flush=True)
        say_where(options, runs=True)
        workspace_of(session).begin(brief=True)
        try:
            write_day(folder, options.seed)
            shutil.copyfile(QUERY, folder / QUERY.name)
        except OSError as error:
            raise UsageError(f"cannot write to '{folder}': {error.strerror}", remedy="choose another folder") from None
        alarms = Alarms()

        def answer(planned: Planned, name: str, schema: pa.Schema) -> Alarms:
            return alarms

        with contextlib.chdir(folder), compiling_announced():
            run = workspace_of(session).assemble(workspace_of(session).prepare(QUERY.read_text()), answer=answer)
            started = time.perf_counter()
            run.run()
            seconds = time.perf_counter() - started
        print(f"\n{_chart(alarms.ended)}\n")
        print(summary(run.status()))
        rows = sum(each.rows_in for each in run.queries[0].status().inputs)
        print(f"{rows:,} readings, twice over, in {seconds:.1f} seconds")
        if options.keep:
            print(f"Look at {folder}, and try: transom explain {folder / QUERY.name}")
    return 0


@contextlib.contextmanager
def _folder(keep: str | None) -> Iterator[Path]:
    if keep is not None:
        yield Path(keep)
        return
    with Scratch("demo") as scratch:
        yield Path(scratch.path)


def _chart(ended: list[tuple[str, datetime, datetime]]) -> str:
    """A line a room, from the first alarm to the last.

    >>> noon, half_past, one = (datetime(2024, 5, 1, 12) + timedelta(minutes=m) for m in (0, 30, 60))
    >>> print(_chart([("1.01", noon, one), ("1.02", half_past, one)]))
          12:00                                                  13:00
    1.01  ############################################################  60 minutes
    1.02  ..............................##############################  30 minutes
    """
    if not ended:
        return "Nothing burned."
    first = min(start for _, start, _ in ended)
    whole = max(end for _, _, end in ended) - first
    lines = [" " * 6 + f"{first:%H:%M}" + f"{first + whole:%H:%M}".rjust(_CHART_WIDTH - 5)]
    for room, start, end in sorted(ended):
        left, right = (int((at - first) / whole * _CHART_WIDTH) for at in (start, end))
        bar = "." * left + "#" * max(1, right - left)
        lines.append(f"{room:4}  {bar:.<{_CHART_WIDTH}}  {_minutes(end - start)}")
    return "\n".join(lines)


def _minutes(span: timedelta) -> str:
    return f"{span / timedelta(minutes=1):.0f} minutes"
