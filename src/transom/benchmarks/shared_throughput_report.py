"""What sharing a join came to: a table in Markdown, a summary, and the panels of a chart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from transom.benchmarks.chart import Panel
from transom.benchmarks.shared_throughput import Measured, Outcome

QUERIES: Final = 100
MATCHES: Final = 0.04
"""The summary is about this cell."""


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Null where the cell was not run."""
    lifetimes, changes = (_find(outcomes, QUERIES, MATCHES, emit) for emit in ("lifetimes", "changes"))
    return {
        "state_ratio_100": None if lifetimes is None else round(lifetimes.state_ratio, 3),
        "throughput_ratio_100": None if lifetimes is None else round(lifetimes.throughput_ratio, 1),
        "throughput_ratio_100_changes": None if changes is None else round(changes.throughput_ratio, 1),
    }


def _find(outcomes: Sequence[Outcome], queries: int, matches: float, emit: str) -> Outcome | None:
    wanted = (queries, matches, emit)
    return next((o for o in outcomes if (o.cell.queries, o.cell.matches, o.cell.emit) == wanted), None)


def told(outcome: Outcome) -> dict[str, Any]:
    """A cell for programs."""
    cell = outcome.cell
    return {
        "queries": cell.queries,
        "matches": cell.matches,
        "emit": cell.emit,
        "largest_window_rows": cell.largest,
        "keys": cell.keys,
        "batch_rows": cell.batch,
        "matches_measured": round(outcome.matches, 5),
        "runs": outcome.runs,
        "rows": outcome.rows,
        "shared": _told(outcome.shared),
        "separate": _told(outcome.separate),
        "alone": {"state_bytes": outcome.alone.bytes, "state_rows": outcome.alone.rows},
        "throughput_ratio": round(outcome.throughput_ratio, 2),
        "state_ratio": round(outcome.state_ratio, 3),
    }


def _told(one: Measured) -> dict[str, int]:
    return {"rows_per_s": round(one.rows_per_s), "state_bytes": one.state.bytes, "state_rows": one.state.rows}


def in_short(outcome: Outcome) -> str:
    shared, separate = outcome.shared.rows_per_s, outcome.separate.rows_per_s
    ratio, state = outcome.throughput_ratio, outcome.state_ratio
    return f"{_short(shared)} rows/s, separate {_short(separate)}: {ratio:.3g} times; state {state:.3g} of the largest"


def tables(outcomes: Sequence[Outcome]) -> str:
    """All figures, for people."""
    heads = [
        "matches a row and query",
        "queries",
        "rows in a batch",
        "shared, rows/s",
        "separate, rows/s",
        "ratio",
        "shared, answers/s",
        "shared, MB (rows)",
        "separate, MB (rows)",
        "largest alone, MB (rows)",
        "turns, rows",
    ]
    lines = [heads, ["---"] * len(heads), *map(_line, outcomes)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"Queries on one join, shared and separate; rows are those of both streams:\n\n{table}"


def _line(outcome: Outcome) -> list[str]:
    cell, shared, separate = outcome.cell, outcome.shared, outcome.separate
    return [
        f"{cell.matches:g}{_form(outcome)}",
        f"{cell.queries}",
        f"{cell.batch:,}",
        _short(shared.rows_per_s),
        _short(separate.rows_per_s),
        f"{outcome.throughput_ratio:.3g}",
        _short(shared.rows_per_s * outcome.matches * cell.queries),
        *(f"{_short(kept.bytes / 1e6)} ({kept.rows:,})" for kept in (shared.state, separate.state, outcome.alone)),
        f"{outcome.runs}, {outcome.rows:,}",
    ]


def _form(outcome: Outcome) -> str:
    return "" if outcome.cell.emit == "lifetimes" else f", as {outcome.cell.emit}"


def _short(value: float) -> str:
    """Three digits that count."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"


def panels(outcomes: Sequence[Outcome]) -> list[Panel]:
    """Rates by the number of queries, a panel for each number of matches; then how they compare, and the state."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(f"{outcome.cell.matches:g} matches a row and query{_form(outcome)}", []).append(outcome)

    def line(of: Sequence[Outcome], figure: Callable[[Outcome], float]) -> tuple[list[float], list[float]]:
        return [float(o.cell.queries) for o in of], [figure(o) for o in of]

    found = []
    for name, some in groups.items():
        rates = {
            "shared": line(some, lambda o: o.shared.rows_per_s),
            "separate": line(some, lambda o: o.separate.rows_per_s),
        }
        found.append(Panel(name, "queries", "rows a second", rates, logarithmic=True))
    ratios = {name: line(some, lambda o: o.throughput_ratio) for name, some in groups.items()}
    found.append(Panel("rate, shared over separate", "queries", "times", ratios, logarithmic=True))
    first = next(iter(groups.values()))
    kept = {
        "shared": line(first, lambda o: o.shared.state.bytes / 1e6),
        "separate": line(first, lambda o: o.separate.state.bytes / 1e6),
    }
    found.append(Panel(f"state, {first[0].cell.matches:g} matches", "queries", "MB", kept, logarithmic=True))
    return found
