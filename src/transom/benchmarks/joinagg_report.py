"""What the experiment came to: a summary and tables in Markdown, and the panels of a chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from transom.benchmarks.chart import Points
from transom.benchmarks.joinagg_data import Cell
from transom.benchmarks.joinagg_run import AUTO, FACTORISED, IC, PC, TC, Measured, Results

TITLES: Final = {
    "window": "Rows in a window of one stream, at a steady rate and with a fixed number of keys",
    "rate": "Seconds of a falling rate, 1 / i^2 of the first in second i",
    "grouped": "Rows in a window of one stream, with GROUP BY a column that is no join key",
    "inputs": "Streams, all joined on one key",
    "matches": "Matches of a row in the other stream",
}
_CHARTED: Final = (
    ("window", "µs a row, by rows in a window", "us"),
    ("window", "MB of state, by rows in a window", "mb"),
    ("rate", "µs a row, by second, falling rate", "us"),
    ("rate", "MB of state, by second, falling rate", "mb"),
    ("grouped", "µs a row, grouped, by rows in a window", "us"),
    ("inputs", "µs a row, by streams", "us"),
    ("matches", "µs a row, by matches of a row", "us"),
    ("matches", "MB of state, by matches of a row", "mb"),
)


@dataclass(frozen=True)
class Outcome:
    """A cell and what every contestant did in it; `x` is what its experiment changes."""

    cell: Cell
    x: float
    results: Results
    refused: Mapping[str, str] = field(default_factory=dict)

    def rate(self, contestant: str) -> float:
        measured = self.results[contestant]
        assert measured is not None
        return measured.rows_per_s

    def told(self) -> dict[str, Any]:
        tactics = {name: None if one is None else one.told() for name, one in self.results.items()}
        told = {**asdict(self.cell), "x": self.x, "matches": self.cell.matches, "tactics": tactics}
        return {**told, "refused": dict(self.refused)} if self.refused else told


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Ratios of rows a second at so many matches a row, and how state grew when the window grew tenfold.

    `auto_over_best_max` is how many times as long as the best the tactic takes that is chosen, at most.

    That is from a tenth of the greatest window that all contestants were measured with.
    """
    matches = {o.x: o for o in outcomes if o.cell.experiment == "matches"}
    found = {f"{name}_over_pc_100": matches[100].rate(name) / matches[100].rate(PC) for name in (FACTORISED, IC, TC)}
    found["auto_over_best_max"] = max(
        max(one.rows_per_s for name, one in o.results.items() if one is not None and name != AUTO) / o.rate(AUTO)
        for o in matches.values()
    )
    found["factorised_1000_over_1"] = matches[1_000].rate(FACTORISED) / matches[1].rate(FACTORISED)
    windows = {o.cell.window: o.results for o in outcomes if o.cell.experiment == "window"}
    great = max(rows for rows, results in windows.items() if None not in results.values())
    growth = {}
    for name, after in windows[great].items():
        before = windows[great // 10][name]
        assert before is not None and after is not None
        growth[name] = round(after.state_bytes / before.state_bytes, 2)
    return {**{name: round(value, 3) for name, value in found.items()}, "state_growth": growth}


def tables(outcomes: Sequence[Outcome]) -> str:
    """All figures, for people."""
    parts = []
    for experiment, title in TITLES.items():
        here = [o for o in outcomes if o.cell.experiment == experiment]
        keys = {o.cell.keys for o in here}
        told = f"{keys.pop()} keys" if len(keys) == 1 else f"windows of {here[0].cell.window:,} rows"
        parts += [f"{title}; {told}. Rows/s, µs a row, MB of state:", _table(here)]
        first = {name: why for o in reversed(here) for name, why in o.refused.items()}
        parts += [f"{name} refuses: {why}." for name, why in first.items()]
    parts += ["Summary:", _markdown(["figure", "value"], _summary_lines(summary(outcomes)))]
    return "\n\n".join(parts)


def panels(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Points]]:
    """A panel for time and one for state where it tells something."""
    found: dict[str, dict[str, Points]] = {}
    for experiment, head, unit in _CHARTED:
        here = [o for o in outcomes if o.cell.experiment == experiment]
        lines: dict[str, Points] = {}
        for name in here[0].results:
            measured = [(o.x, o.results[name]) for o in here]
            points = [(x, _in_unit(one, unit)) for x, one in measured if one is not None]
            if points:
                lines[name] = points
        found[head] = lines
    return found


def _in_unit(one: Measured, unit: str) -> float:
    return one.micros_per_row if unit == "us" else one.state_bytes / 1e6


def _table(outcomes: Sequence[Outcome]) -> str:
    heads = ["tactic", *(f"{o.x:,g}" for o in outcomes)]
    body = [[name, *(_figures(o, name) for o in outcomes)] for name in outcomes[0].results]
    if outcomes[0].cell.experiment == "matches":
        body.append(["the join of pc alone, join rows/s", *(_join_rate(o) for o in outcomes)])
    return _markdown(heads, body)


def _figures(outcome: Outcome, name: str) -> str:
    one = outcome.results[name]
    if one is None:
        return "refuses" if name in outcome.refused else "-"
    return f"{_short(one.rows_per_s)}, {_short(one.micros_per_row)}, {_short(one.state_bytes / 1e6)}"


def _join_rate(outcome: Outcome) -> str:
    one = outcome.results[PC]
    return "-" if one is None or one.join_rows_per_s is None else _short(one.join_rows_per_s)


def _short(value: float) -> str:
    """Three digits that count."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"


def _summary_lines(told: Mapping[str, Any]) -> list[list[str]]:
    flat = {k: v for k, v in told.items() if k != "state_growth"}
    flat |= {f"state_growth of {name}": value for name, value in told["state_growth"].items()}
    return [[name, f"{value:g}"] for name, value in flat.items()]


def _markdown(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
