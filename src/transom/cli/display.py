"""The live display of a run: where the rows are, how fast they come, and what time waits for."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Final

from transom.cli.notices import notice
from transom.cli.summary import instant_text
from transom.connectors.screen import Screen
from transom.core.text import size_text, visible
from transom.monitoring.rate import Rate
from transom.planner.explain import title
from transom.program.progress import Progress
from transom.program.run import Run
from transom.program.status import InputStatus, OperatorStatus, Status

_SECONDS_BETWEEN_LOOKS: Final = 0.2
_SECONDS_OF_SILENCE: Final = 1.0
_PART: Final = "display of the run"


class Display:
    """Renewed by `watch`, which is handed to a run; it does nothing if nobody would see it.

    `first` is what it says until there is more to say.
    """

    def __init__(self, screen: Screen, shown: bool = True, first: str = "starting") -> None:
        self._screen = screen
        self._shown = shown and screen.shows_parts
        self._first = first
        self._last = 0.0
        self._rates: dict[tuple[str, str], Rate] = {}
        self._out: dict[str, tuple[int, float]] = {}

    @property
    def shown(self) -> bool:
        """Whether somebody sees it."""
        return self._shown

    def start(self) -> None:
        if self._shown:
            self._screen.stand(_PART, self._first)

    def announce(self, text: str) -> None:
        """What takes a while: in place of what it says, until there is more to say, or as a notice."""
        if self._shown:
            self._screen.stand(_PART, text)
        else:
            notice(text)

    def __enter__(self) -> Display:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def watch(self, run: Run) -> None:
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN_LOOKS and self._shown:
            self._last = now
            lines = [line for each in run.status() for line in self._lines(each, run.last(each.name), now)]
            self._screen.stand(_PART, _drawn(lines))

    def end(self) -> None:
        self._screen.remove(_PART)

    def _lines(self, status: Status, last: Progress | None, now: float) -> list[str]:
        rates = []
        for each in status.inputs:
            rate = self._rates.setdefault((status.name, each.name), Rate())
            rates.append(rate.of(each.rows_in, now))
        rows_out, since = self._out.get(status.name, (-1, now))
        if rows_out != status.rows_out:
            since = now
        self._out[status.name] = (status.rows_out, since)
        return lines(status, rates, now - since >= _SECONDS_OF_SILENCE, None if last is None else last.seconds)


def lines(status: Status, rates: Sequence[int], silent: bool, batch: float | None = None) -> list[str]:
    """What the display says of a query; `rates` are the rows a second of its inputs, `silent`: nothing comes out.

    `batch`: how many seconds the last batch took, where batches are worth a word.
    """
    rows_in = sum(each.rows_in for each in status.inputs)
    took = "" if batch is None else f" {batch:.2f} s a batch,"
    lines = [
        f"{status.name}: {rows_in:,} rows in, {status.rows_out:,} rows out, {sum(rates):,} rows/s,{took}"
        f" up to {instant_text(status.progress)}"
    ]
    if status.held_back_by is not None:
        stands = f"time is held back by {status.held_back_by}"
        lines.append(f"  nothing comes out: {stands}" if silent else f"  {stands}")
    inputs = [_input_cells(each, rate) for each, rate in zip(status.inputs, rates, strict=True)]
    lines += _table([("input", "rows in", "rows/s", "waiting", "late", "rejected", "up to"), *inputs])
    # The last one first, as in EXPLAIN.
    operators = [_operator_cells(operator) for operator in reversed(status.operators)]
    lines += _table([("operator", "rows in", "rows out", "rows kept", "state"), *operators])
    return [visible(line) for line in lines]


def _input_cells(status: InputStatus, rate: int) -> tuple[str, ...]:
    reached = "" if status.watermark is None else instant_text(status.watermark)
    counts = (status.rows_in, rate, status.waiting, status.late, status.rejected)
    return (status.name, *(f"{count:,}" for count in counts), "its end" if status.ended else reached)


def _operator_cells(status: OperatorStatus) -> tuple[str, ...]:
    name = f"#{status.number} {title(status.operator, status.tactic)}"
    return name, f"{status.rows_in:,}", f"{status.rows_out:,}", f"{status.state_rows:,}", size_text(status.state_bytes)


def _table(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Columns side by side, the first to the left and numbers to the right."""
    listed = list(rows)
    widths = [max(len(row[i]) for row in listed) for i in range(len(listed[0]))]
    texts = []
    for first, *others in listed:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        texts.append("  " + "  ".join(cells).rstrip())
    return texts


def _drawn(lines: list[str]) -> Any:
    from rich.text import Text

    text = Text(no_wrap=True, overflow="ellipsis")
    for i, line in enumerate(lines):
        style = "bold" if not line.startswith(" ") else "yellow" if "nothing comes out" in line else ""
        text.append(("\n" if i else "") + line, style)
    return text
