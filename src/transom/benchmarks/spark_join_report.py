"""What the join on Spark came to: a table for people, JSON for programs, bars for a chart."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from transom.benchmarks.spark_join_data import Cell, Digest, Measured

PARTITIONS: Final = "spark.sql.shuffle.partitions"
DEFAULT, ROCKSDB, FILES, DATAFRAME = "spark_default", "spark_rocksdb", "transom_files", "transom_dataframe"


@dataclass(frozen=True)
class Outcome:
    """One run of one contestant over one cell; `cell` has the batches that it was given."""

    contestant: str
    cell: Cell
    measured: Measured
    found: Digest
    expected: Digest

    @property
    def right(self) -> bool:
        return self.found == self.expected

    @property
    def rows_per_s(self) -> float:
        """The median over the steady batches, rows of both streams counted."""
        steady = slice(self.cell.unsteady, None)
        pairs = zip(self.measured.batch_rows[steady], self.measured.batch_s[steady], strict=True)
        return statistics.median(rows / seconds for rows, seconds in pairs)

    @property
    def steady_batch_s(self) -> float:
        return statistics.median(self.measured.batch_s[self.cell.unsteady :])

    @property
    def steady_state_bytes(self) -> float | None:
        written = self.measured.state_bytes[self.cell.unsteady :]
        return statistics.median(written) if written else None


Best = Mapping[tuple[str, str], Outcome]
"""By cell and contestant."""


def best(outcomes: Sequence[Outcome]) -> Best:
    """Of the runs with different settings, the one with the highest rate."""
    found: dict[tuple[str, str], Outcome] = {}
    for outcome in outcomes:
        place = (outcome.cell.name, outcome.contestant)
        if place not in found or outcome.rows_per_s > found[place].rows_per_s:
            found[place] = outcome
    return found


def summary(chosen: Best) -> dict[str, float | None]:
    """The rates of the short cell and the ratios that count; None where a contestant did not run."""
    rates = _rates(chosen)
    times = {cell: run.steady_batch_s for (cell, name), run in chosen.items() if name == FILES}
    written = {cell: run.steady_state_bytes for (cell, name), run in chosen.items() if name == FILES}
    files = chosen.get(("short", FILES))

    def ratio(cell: str, rival: str, contestant: str = FILES) -> float | None:
        return _ratio(rates.get((cell, contestant)), rates.get((cell, rival)))

    return {
        **{name: _rounded(rates.get(("short", name)), 0) for name in (DEFAULT, ROCKSDB, FILES, DATAFRAME)},
        "ratio_default": ratio("short", DEFAULT),
        "ratio_rocksdb": ratio("short", ROCKSDB),
        "ratio_default_long": ratio("long", DEFAULT),
        "ratio_default_small": ratio("small", DEFAULT),
        "ratio_dataframe_default": ratio("short", DEFAULT, DATAFRAME),
        "first_batch_s": None if files is None else round(files.measured.batch_s[0], 2),
        "growth_time": _ratio(times.get("growth_10"), times.get("growth_1")),
        "growth_bytes": _ratio(written.get("growth_10"), written.get("growth_1")),
    }


def _rates(chosen: Best) -> dict[tuple[str, str], float]:
    return {place: outcome.rows_per_s for place, outcome in chosen.items()}


def _ratio(over: float | None, under: float | None) -> float | None:
    return _rounded(over / under, 2) if over is not None and under else None


def _rounded(number: float | None, digits: int) -> float | None:
    return None if number is None else round(number, digits) if digits else round(number)


def report(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    chosen = best(outcomes)
    cells: dict[str, Any] = {}
    for (name, contestant), outcome in chosen.items():
        cell = outcome.cell
        about = cells.setdefault(
            name,
            {
                "rows_per_batch": 2 * cell.batch_rows,
                "window_rows": cell.window_rows,
                "keys": cell.keys,
                "contestants": {},
            },
        )
        runs = [run for run in outcomes if run.cell.name == name and run.contestant == contestant]
        about["contestants"][contestant] = _told(outcome) | {"tried": [_trial(run) for run in runs]}
    return {"cores": os.cpu_count(), "cells": cells, "summary": summary(chosen)}


def _told(outcome: Outcome) -> dict[str, Any]:
    measured = outcome.measured
    return {
        "rows_per_s": round(outcome.rows_per_s),
        "batch_s": round(outcome.steady_batch_s, 3),
        "first_batch_s": measured.batch_s[0],
        "start_s": round(measured.start_s, 2),
        "batches_s": list(measured.batch_s),
        "steady_batches": outcome.cell.batches - outcome.cell.unsteady,
        "output_rows": outcome.found.rows,
        "expected_rows": outcome.expected.rows,
        "right": outcome.right,
        "state_bytes_written": outcome.steady_state_bytes,
        "settings": dict(measured.settings),
    }


def _trial(outcome: Outcome) -> dict[str, Any]:
    return {
        PARTITIONS: outcome.measured.settings.get(PARTITIONS),
        "rows_per_s": round(outcome.rows_per_s),
        "batch_s": round(outcome.steady_batch_s, 3),
        "right": outcome.right,
    }


def table(outcomes: Sequence[Outcome]) -> str:
    """The last column is the rate over that of Spark's own join with its default store."""
    chosen = best(outcomes)
    rates = _rates(chosen)
    lines = [
        f"{'cell':<10} {'contestant':<18} {'rows/s':>12} {'s a batch':>10} {'first s':>8} {'steady':>7} "
        f"{'rows out':>11} {'right':>6} {'ratio':>7}"
    ]
    for (name, contestant), outcome in sorted(chosen.items(), key=lambda one: _order(one[0])):
        lines.append(
            f"{name:<10} {contestant:<18} {outcome.rows_per_s:>12,.0f} {outcome.steady_batch_s:>10.3f} "
            f"{outcome.measured.batch_s[0]:>8.2f} {outcome.cell.batches - outcome.cell.unsteady:>7} "
            f"{outcome.found.rows:>11,} {'yes' if outcome.right else 'NO':>6} "
            f"{_number(_ratio(outcome.rows_per_s, rates.get((name, DEFAULT)))):>7}"
        )
    lines += ["", *(f"{name:<24} {_number(value)}" for name, value in summary(chosen).items())]
    return "\n".join([*lines, "", *_settings(chosen)])


def _order(place: tuple[str, str]) -> tuple[int, int]:
    cells, names = ("short", "long", "small", "growth_1", "growth_10"), (DEFAULT, ROCKSDB, FILES, DATAFRAME)
    return cells.index(place[0]), names.index(place[1])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,}"


def _settings(chosen: Best) -> list[str]:
    """Those of all runs of a contestant once, and in which cell it took which others."""
    lines = []
    for contestant in dict.fromkeys(name for _, name in chosen):
        runs = {cell: dict(run.measured.settings) for (cell, name), run in chosen.items() if name == contestant}
        shared = set.intersection(*(set(settings.items()) for settings in runs.values()))
        lines.append(f"Settings of {contestant}:")
        lines += [f"  {name} = {value}" for name, value in sorted(shared)]
        for cell, settings in runs.items():
            lines += [f"  {name} = {value} ({cell})" for name, value in sorted(set(settings.items()) - shared)]
    return lines


def bars(chosen: Best) -> tuple[list[str], dict[str, list[float | None]]]:
    """The cells that have rivals, and of each contestant its rate in them, in million rows a second."""
    cells = [cell for cell in ("short", "long", "small") if any(place[0] == cell for place in chosen)]
    names = [name for name in (DEFAULT, ROCKSDB, FILES, DATAFRAME) if any(place[1] == name for place in chosen)]
    rates = {place: outcome.rows_per_s / 1e6 for place, outcome in chosen.items()}
    return cells, {name: [rates.get((cell, name)) for cell in cells] for name in names}
