"""What the experiment came to: a summary and tables in Markdown, and the lines of a chart like the paper's figure 5."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from transom.benchmarks.chart import Points
from transom.benchmarks.lifetimes_data import JOINS, STATELESS, Cell
from transom.benchmarks.lifetimes_run import DIRECT, LAZY, NEGATIVE, SORTED, Rate

Large = Mapping[int, Mapping[str, float]]
"""By the rows of the window: `rows_per_s` and `peak_bytes`."""

_PANELS: Final = (*STATELESS, "join")
_WINDOWS: Final = {"rows": "ROWS", "time": "RANGE"}


@dataclass(frozen=True)
class Outcome:
    """A cell and the rate of every method in it; None: not measured, it takes too long."""

    cell: Cell
    rates: Mapping[str, Rate | None]

    def rate(self, method: str) -> Rate:
        rate = self.rates[method]
        assert rate is not None
        return rate

    @property
    def ratio(self) -> float:
        return self.rate(DIRECT).rows_per_s / self.rate(NEGATIVE).rows_per_s

    @property
    def visits_ratio(self) -> float:
        return self.rate(NEGATIVE).visits / self.rate(DIRECT).visits

    def told(self) -> dict[str, Any]:
        methods = {method: None if rate is None else rate.told() for method, rate in self.rates.items()}
        ratios = {"ratio": round(self.ratio, 3), "visits_ratio": self.visits_ratio}
        return {**asdict(self.cell), "methods": methods, **ratios}


def summary(outcomes: Sequence[Outcome], large: Large) -> dict[str, float]:
    """Ratios are rates of direct over those of negative tuples."""
    stateless = [o for o in outcomes if o.cell.query in STATELESS]
    counted = [o for o in stateless if o.cell.kind == "rows"]
    # Of the ratios of visits the one that is farthest from the two that they should be.
    visits = max((o.visits_ratio for o in stateless), key=lambda ratio: abs(ratio - 2))
    found = {"visits_ratio_stateless": visits, "min_ratio_stateless": min(o.ratio for o in counted)}
    for batch in _batches(outcomes):
        found[f"min_ratio_stateless_{batch}"] = min(o.ratio for o in counted if o.cell.batch == batch)
    for kind in ("time", "rows"):
        for query in JOINS:
            ratios = [o.ratio for o in outcomes if o.cell.query == query and o.cell.kind == kind]
            found[f"ratio_{kind}_{query}"] = statistics.median(ratios)
            found[f"ratio_{kind}_{query}_min"] = min(ratios)
    small, great = min(large), max(large)
    found["rows_10m_over_1m"] = large[great]["rows_per_s"] / large[small]["rows_per_s"]
    found["peak_mb_10m"] = large[great]["peak_bytes"] / 1e6
    return {name: round(value, 3) for name, value in found.items()}


def tables(outcomes: Sequence[Outcome], large: Large) -> str:
    """All figures, for people."""
    parts = [
        "Million rows a second, direct / negative tuples = ratio, by the rows in the windows:",
        _pivot(outcomes, _pair),
        "Million rows a second, direct joins with `lazy_hash` / the same with sorted insertion (-: not measured, it "
        "takes too long):",
        _pivot([o for o in outcomes if o.cell.query in JOINS], _sets),
        "Visits: rows that came into the operator above the windows, per input row, once the windows are full:",
        _visits(outcomes),
        "A selection over the greatest windows, in batches of 100,000 rows:",
        _large(large),
        "Summary; ratios are rates of direct over those of negative tuples, medians over windows and batches:",
        _markdown(["figure", "value"], [[name, f"{value:g}"] for name, value in summary(outcomes, large).items()]),
    ]
    return "\n\n".join(parts)


def panels(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Points]]:
    """A panel for each query and cut into batches: million rows a second over the rows in the windows."""
    found: dict[str, dict[str, Points]] = {}
    for batch in _batches(outcomes):
        for query in _PANELS:
            here = [o for o in outcomes if o.cell.query == query and o.cell.batch == batch]
            lines: dict[str, Points] = {}
            for method in (DIRECT, NEGATIVE, SORTED):
                for kind, window in _WINDOWS.items():
                    points = _points([o for o in here if o.cell.kind == kind], method)
                    if points:
                        lines[f"{method.replace('_', ' ')}, {window}"] = points
            found[f"{query}, batches of {batch:,}"] = lines
    return found


def _points(outcomes: Sequence[Outcome], method: str) -> list[tuple[float, float]]:
    rates = [(o.cell.rows, o.rates.get(method)) for o in outcomes]
    return [(rows, rate.rows_per_s / 1e6) for rows, rate in rates if rate is not None]


def _batches(outcomes: Sequence[Outcome]) -> list[int]:
    return sorted({o.cell.batch for o in outcomes})


def _pair(outcome: Outcome) -> str:
    rates = (outcome.rate(method).rows_per_s for method in (DIRECT, NEGATIVE))
    return f"{' / '.join(map(_millions, rates))} = {outcome.ratio:.2f}"


def _sets(outcome: Outcome) -> str:
    rates = [outcome.rates[method] for method in (LAZY, SORTED)]
    return " / ".join("-" if rate is None else _millions(rate.rows_per_s) for rate in rates)


def _millions(rate: float) -> str:
    millions = rate / 1e6
    return f"{millions:,.0f}" if millions >= 100 else f"{millions:.3g}"


def _pivot(outcomes: Sequence[Outcome], show: Any) -> str:
    windows = sorted({o.cell.rows for o in outcomes})
    heads = ["query", "window", "batch", *(f"{rows:,}" for rows in windows)]
    lines: dict[tuple[str, str, int], dict[int, str]] = {}
    for o in outcomes:
        lines.setdefault((o.cell.query, o.cell.kind, o.cell.batch), {})[o.cell.rows] = show(o)
    body = [
        [q, _WINDOWS[kind], f"{batch:,}", *(cells[w] for w in windows)] for (q, kind, batch), cells in lines.items()
    ]
    return _markdown(heads, body)


def _visits(outcomes: Sequence[Outcome]) -> str:
    body = []
    for query in dict.fromkeys(o.cell.query for o in outcomes):
        here = [o for o in outcomes if o.cell.query == query]
        counts = [sorted({o.rate(method).visits for o in here}) for method in (DIRECT, NEGATIVE)]
        body.append([query, *(" to ".join(dict.fromkeys(f"{c:g}" for c in (count[0], count[-1]))) for count in counts)])
    return _markdown(["query", "direct", "negative"], body)


def _large(large: Large) -> str:
    body = [
        [f"{rows:,}", _millions(one["rows_per_s"]), f"{one['peak_bytes'] / 1e6:,.0f}"] for rows, one in large.items()
    ]
    return _markdown(["rows in the window", "million rows a second", "most MB above the idle process"], body)


def _markdown(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
