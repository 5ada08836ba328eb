"""What the experiment came to: a summary and tables in Markdown, and the panels of a chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from transom.benchmarks.chart import Panel
from transom.benchmarks.overlap_run import FULL, HYBRID, INCREMENTAL, TACTICS

Found = Mapping[str, Any]
"""A cell, as it is written down."""

TIMED: Final = {
    "size": "rows of a stream in a basic window",
    "selectivity": "selectivity",
}
KEPT: Final = {
    "windows": "Windows do not fit into memory",
    "results": "Windows fit, results do not",
}


def summary(found: Sequence[Found]) -> dict[str, Any]:
    """Hybrid beside the better and the worse of the two others; where they cross; memory; the burst."""
    timed = [cell for cell in found if cell["experiment"] in TIMED]
    best, worst = [], []
    for cell in timed:
        times = sorted(_ms(cell, tactic) for tactic in (INCREMENTAL, FULL))
        best.append(_ms(cell, HYBRID) / times[0])
        worst.append(_ms(cell, HYBRID) / times[1])
    told: dict[str, Any] = {"max_hybrid_over_best": max(best), "min_hybrid_over_worst": min(worst)}
    for experiment in TIMED:
        told[f"full_is_faster_from_{experiment}"] = _crossing(_of(found, experiment))
    memory = [cell["peak_over_budget_mb"] for cell in found if cell["experiment"] in KEPT]
    told["peak_over_budget_mb"] = max(memory)
    (burst,) = _of(found, "burst")
    told["burst"] = {name: burst[name] for name in ("complete", "put_off", "completed_later")}
    told["burst"]["unfinished"] = len(burst["unfinished"])
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in told.items()}


def _crossing(cells: Sequence[Found]) -> float | None:
    """From where on full is the faster one, if it is in the end."""
    at = None
    for cell in reversed(cells):
        if _ms(cell, FULL) >= _ms(cell, INCREMENTAL):
            break
        at = float(cell["x"])
    return at


def tables(found: Sequence[Found]) -> str:
    """All figures, for people."""
    parts = []
    for experiment, what in TIMED.items():
        here = _of(found, experiment)
        first = here[0]
        fixed = f"{first['rows']:,} rows" if experiment == "selectivity" else f"selectivity {first['selectivity']:g}"
        setting = f"{first['budget_mb']:g} MB of memory, a disk of {first['disk_mb_s']:g} MB/s"
        parts += [f"Milliseconds a slide, by {what}; {fixed}, {setting}:", _times(here)]
        parts += ["How hybrid made the measured slides, and what it estimated, in milliseconds:", _choices(here)]
        parts += ["The slides of learning, milliseconds in all (in the first three the windows fill):", _learning(here)]
    kept = [cell for cell in found if cell["experiment"] in KEPT]
    parts += ["Memory of a process above what it has when idle, in MB:", _memory(kept)]
    (burst,) = _of(found, "burst")
    parts += [_burst(burst), _delays(burst)]
    told = summary(found)
    parts += ["Summary:", _markdown(["figure", "value"], [[name, _plain(value)] for name, value in told.items()])]
    return "\n\n".join(parts)


def panels(found: Sequence[Found]) -> list[Panel]:
    drawn = []
    for experiment, what in TIMED.items():
        here = _of(found, experiment)
        xs = [cell["x"] for cell in here]
        lines = {tactic: (xs, [_ms(cell, tactic) for cell in here]) for tactic in TACTICS}
        drawn.append(Panel(f"a slide, by {what}", what, "ms", lines, logarithmic=True))
    drawn.append(_drawn_delays(*_of(found, "burst")))
    for experiment, what in TIMED.items():
        here = _of(found, experiment)
        lines = {}
        for tactic, cost in ((INCREMENTAL, "reuse_cost_ms"), (FULL, "join_cost_ms")):
            lines[f"{tactic}, measured"] = [c["x"] for c in here], [_ms(c, tactic) for c in here]
            known = [(c["x"], value) for c in here if (value := _estimate(c, cost)) is not None]
            lines[f"C_{cost.split('_')[0]}, estimated"] = [x for x, _ in known], [value for _, value in known]
        drawn.append(Panel(f"costs, by {what}", what, "ms", lines, logarithmic=True))
    return drawn


def _drawn_delays(burst: Found) -> Panel:
    seconds = burst["slide_ms"] / 1e3
    at = [one["slide"] * seconds for one in burst["slides"]]
    late = [(one["slide"] * seconds, told / 1e3) for one in burst["slides"] for told in one["put_off_ms"]]
    lines: dict[str, tuple[Sequence[float], Sequence[float]]] = {
        "until it was complete": (at, [one["delay_ms"] / 1e3 for one in burst["slides"]]),
        "until it was put off": ([x for x, _ in late], [y for _, y in late]),
    }
    begin = burst["slides_before"] * seconds
    shaded = [(begin, begin + burst["slides_of_burst"] * seconds)]
    return Panel("delay of every slide; the burst is shaded", "s, when a slide was due", "s", lines, shaded)


# --- tables ----------------------------------------------------------------------------------------------------------


def _times(cells: Sequence[Found]) -> str:
    body = [["results of a slide", *(f"{cell['results_a_slide']:,}" for cell in cells)]]
    for tactic in TACTICS:
        body.append([tactic, *(_short(_ms(cell, tactic)) for cell in cells)])
    for name, pick in (("hybrid / better", min), ("hybrid / worse", max)):
        others = [pick(_ms(cell, INCREMENTAL), _ms(cell, FULL)) for cell in cells]
        body.append([name, *(f"{_ms(cell, HYBRID) / other:.2f}" for cell, other in zip(cells, others, strict=True))])
    body.append(["incremental: MB written, read", *(_disk(cell, INCREMENTAL) for cell in cells)])
    body.append(["hybrid: MB written, read", *(_disk(cell, HYBRID) for cell in cells)])
    return _by_x(cells, body)


def _choices(cells: Sequence[Found]) -> str:
    ways = list(dict.fromkeys(way for cell in cells for way in cell["tactics"][HYBRID]["ways"]))
    body = [[way, *(str(cell["tactics"][HYBRID]["ways"].get(way, 0)) for cell in cells)] for way in sorted(ways)]
    for cost, name in (("reuse_cost_ms", "C_reuse"), ("join_cost_ms", "C_join")):
        known = [_estimate(cell, cost) for cell in cells]
        body.append([name, *("not asked" if value is None else _short(value) for value in known)])
    return _by_x(cells, body)


def _learning(cells: Sequence[Found]) -> str:
    totals = {tactic: [sum(cell["tactics"][tactic]["learning_ms"]) for cell in cells] for tactic in TACTICS}
    return _by_x(cells, [[tactic, *map(_short, times)] for tactic, times in totals.items()])


def _memory(cells: Sequence[Found]) -> str:
    heads = ["run", "tactic", "budget", "came in", "peak", "peak above budget", "written", "read", "ms a slide", "ways"]
    body = []
    for cell in cells:
        ways = ", ".join(f"{count} {way}" for way, count in sorted(cell["ways"].items()))
        figures = (cell[name] for name in ("budget_mb", "input_mb", "peak_mb", "peak_over_budget_mb"))
        disk = (cell[name] for name in ("written_mb", "read_mb", "ms"))
        body.append([KEPT[cell["experiment"]], cell["tactic"], *map(_short, (*figures, *disk)), ways])
    return _markdown(heads, body)


def _burst(burst: Found) -> str:
    rows = f"{burst['calm']:,} rows of a stream a slide, then {burst['burst']:,} for {burst['slides_of_burst']} slides"
    setting = f"{burst['budget_mb']:g} MB of memory, a disk of {burst['disk_mb_s']:g} MB/s"
    told = f"{burst['complete']} complete, {burst['put_off']} put off, {burst['completed_later']} completed later"
    return f"A burst: {rows} of {burst['slide_ms']} ms; {setting}. Slides: {told}:"


def _delays(burst: Found) -> str:
    stages = {"before": (0, burst["slides_before"])}
    stages["burst"] = stages["before"][1], stages["before"][1] + burst["slides_of_burst"]
    stages["after"] = stages["burst"][1], len(burst["slides"]) + 1
    body = []
    for one in burst["slides"]:
        # What a basic window brings is told by the slide at its end.
        stage = next((name for name, (begin, end) in stages.items() if begin < one["slide"] <= end), "after")
        put_off = ", ".join(map(_short, one["put_off_ms"])) or "-"
        body.append([str(one["slide"]), stage, str(one["attempts"]), put_off, _short(one["delay_ms"])])
    return _markdown(["slide", "rows of", "attempts", "put off after ms", "complete after ms"], body)


def _by_x(cells: Sequence[Found], body: Sequence[Sequence[str]]) -> str:
    return _markdown(["", *(f"{cell['x']:,g}" for cell in cells)], body)


def _of(found: Sequence[Found], experiment: str) -> list[Found]:
    return [cell for cell in found if cell["experiment"] == experiment]


def _ms(cell: Found, tactic: str) -> float:
    return float(cell["tactics"][tactic]["ms"])


def _estimate(cell: Found, cost: str) -> float | None:
    value: float | None = cell["tactics"][HYBRID]["estimates"][cost]
    return value


def _disk(cell: Found, tactic: str) -> str:
    one = cell["tactics"][tactic]
    return f"{_short(one['written_mb_a_slide'])}, {_short(one['read_mb_a_slide'])}"


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    return "none" if value is None else f"{value:,g}"


def _short(value: float) -> str:
    """Three digits that count."""
    return f"{float(f'{value:.3g}'):,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _markdown(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
