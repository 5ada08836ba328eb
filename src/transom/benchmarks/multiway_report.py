"""What the experiment came to, from what was written down: a summary, tables in Markdown, and the panels of a chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from transom.benchmarks.chart import Points
from transom.benchmarks.multiway_contestant import AUTO, MJOIN, TACTICS, TREE

Told = Mapping[str, Any]
"""A cell, or what a contestant did in it."""

_TABLES: Final = (
    (("streams",), "Streams at a window of 1 s"),
    (("window",), "Seconds of the window, {streams} streams"),
    (("columns", "changes"), "{streams} streams at a window of 1 s, with other answers"),
    (("paced",), "Streams at a window of 1 s, rows in real time"),
    (("probes",), "Streams, where a probe meets {candidates:,.0f} candidates"),
)
_HEADS: Final = {"columns": "all 10 columns of each", "changes": "as changes, told again at the end"}
_AXES: Final = {"streams": "streams", "window": "seconds", "probes": "streams", "rate": "matches"}


# --- summary ---------------------------------------------------------------------------------------------------------


def summary(cells: Sequence[Told]) -> dict[str, Any]:
    """The figures that answer the questions of the experiment; null where the part was not run."""
    found: dict[str, Any] = {"best_p50_us_20": None, "best_tactic_20": None}
    twenty = _find(cells, "streams", 20)
    if twenty is not None:
        best = min(TACTICS, key=lambda name: price(twenty, name))
        found = {"best_p50_us_20": price(twenty, best), "best_tactic_20": best}
    compared = [_auto(cell) for cell in cells if cell["experiment"] not in ("floor", "paced")]
    worst = max(compared, key=lambda one: float(one["over_best"]), default={})
    found |= {
        "auto_over_best_max": worst.get("over_best"),
        "auto_over_best_cell": worst.get("cell"),
        "auto_over_best_spread": worst.get("spread"),
        "auto_cells": compared,
        "mjoin_state_over_tree_5": None,
        "mjoin_state_bytes_over_tree_5": None,
        "tree_over_probe_floor": None,
    }
    rates = [cell for cell in cells if cell["experiment"] == "rate"]
    if rates:
        mjoin, tree = (max(rates, key=lambda cell: float(cell["x"]))["tactics"][name] for name in (MJOIN, TREE))
        found["mjoin_state_over_tree_5"] = round(mjoin["state_rows"] / tree["state_rows"], 3)
        found["mjoin_state_bytes_over_tree_5"] = round(mjoin["state_bytes"] / tree["state_bytes"], 3)
    floor = next((cell for cell in cells if cell["experiment"] == "floor"), None)
    if floor is not None:
        both = (*floor["one_row_a_step"].values(), *floor["in_batches"].values())
        found["tree_over_probe_floor"] = max(one["over"] for one in both)
    return found


def price(cell: Told, name: str) -> float:
    """What a contestant is judged by: the median latency of rows with a result, at full rate the time a row."""
    one = cell["tactics"][name]
    return float(one["us_per_row"] if cell["experiment"] == "rate" else one["with_result"]["p50_us"])


def _auto(cell: Told) -> dict[str, Any]:
    best = min(TACTICS, key=lambda name: price(cell, name))
    tactics = cell["tactics"]
    return {
        "cell": cell["label"],
        "chosen": tactics[AUTO]["chosen"],
        "best": best,
        "over_best": round(price(cell, AUTO) / price(cell, best), 3),
        "spread": max(tactics[AUTO]["spread"], tactics[best]["spread"]),
    }


def _find(cells: Sequence[Told], experiment: str, x: float) -> Told | None:
    return next((cell for cell in cells if cell["experiment"] == experiment and cell["x"] == x), None)


# --- tables ----------------------------------------------------------------------------------------------------------


def tables(told: Told) -> str:
    """All figures, for people."""
    cells = told["cells"]
    parts = [_machine_line(one) for one in told.get("machines", [told.get("machine", {})]) if one]
    for experiments, title in _TABLES:
        here = [cell for experiment in experiments for cell in _in(cells, experiment)]
        if here:
            head = title.format(**here[0])
            parts += [f"{head}. Rows with a result: mean, p50, p99 µs:", _table(here, _latency("with_result"))]
            parts += [f"{head}. All rows: mean, p50, p99 µs:", _table(here, _latency("all_rows"))]
            parts += [f"{head}. Rows of state, probes on the critical path:", _table(here, _state_and_path)]
    probes = _in(cells, "probes")
    if probes:
        parts.append("What a probe costs, beside a hand-over between threads; hand-overs for a row with a result:")
        parts.append(_probes(probes))
    for cell in [*_in(cells, "streams")[-1:], *probes]:
        parts += [f"Where the time goes, {cell['label']}; µs, medians of rows with a result:", _profile(cell)]
    rates = [cell for cell in cells if cell["experiment"] == "rate"]
    if rates:
        parts += [
            f"Matches a probe, {rates[0]['streams']} streams, windows of {rates[0]['window_rows']:,} rows, batches of "
            f"{rates[0]['batch']:,} rows of each. Rows/s, rows of state, MB of state:",
            _table(rates, _rate),
        ]
        if all(cell["tactics"][TREE]["is_chain"] for cell in rates):
            parts.append("The tree is a chain already.")
    for cell in cells:
        if cell["experiment"] == "floor":
            parts += [f"A row of the tree over {cell['probes']} single probes, µs:", _floor(cell)]
    parts += ["What auto chose:", _chosen(told["summary"]["auto_cells"])]
    lines = [[name, _plain(value)] for name, value in told["summary"].items() if name != "auto_cells"]
    return "\n\n".join([*parts, "Summary:", markdown(["figure", "value"], lines)])


def _in(cells: Sequence[Told], experiment: str) -> list[Told]:
    """The cells of an experiment; that with a window of 1 s belongs to those with other windows as well."""
    found = [cell for cell in cells if cell["experiment"] == experiment]
    if experiment == "window" and found:
        first = _find(cells, "streams", found[0]["streams"])
        if first is not None:
            found.insert(0, {**first, "x": first["window_s"]})
    return found


def _machine_line(one: Told) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in one["versions"].items())
    return (
        f"{one['cores']} cores, {one['processor']}, {one['memory_gib']} GiB; {versions}; "
        f"a hand-over between threads takes {one['handover_us']:g} µs."
    )


def _table(cells: Sequence[Told], figures: Callable[[Told], str]) -> str:
    names = list(cells[0]["tactics"])
    body = [[name, *(figures(cell["tactics"][name]) for cell in cells)] for name in names]
    return markdown(["tactic", *(_HEADS.get(cell["experiment"], f"{cell['x']:,g}") for cell in cells)], body)


def _latency(rows: str) -> Callable[[Told], str]:
    return lambda one: ", ".join(short(one[rows][figure]) for figure in ("mean_us", "p50_us", "p99_us"))


def _state_and_path(one: Told) -> str:
    path = f"{one['path']:.3g}"
    return f"{one['state_rows']:,}, {path}" + (
        f" ({one['path_here']:.3g} here)" if one["path_here"] != one["path"] else ""
    )


def _rate(one: Told) -> str:
    return f"{short(one['rows_per_s'])}, {one['state_rows']:,}, {short(one['state_bytes'] / 1e6)}"


def _probes(cells: Sequence[Told]) -> str:
    heads = ["streams", "µs a probe", "µs a hand-over", "hand-overs a probe costs", *TACTICS, AUTO]
    body = []
    for cell in cells:
        figures = [f"{cell['probe_us']:,g}", f"{cell['handover_us']:g}", f"{cell['probe_over_handover']:g}"]
        handed = [f"{cell['tactics'][name]['handed_over']:.3g}" for name in (*TACTICS, AUTO)]
        body.append([f"{cell['x']:g}", *figures, *handed])
    return markdown(heads, body)


def _profile(cell: Told) -> str:
    heads = ["tactic", "whole", "in joins", "around them", "hand-overs", "background, any row", "p99", "over the gap"]
    body = []
    for name, one in cell["tactics"].items():
        whole, joins, behind = one["with_result"]["p50_us"], one["join_us"], one["background_us"]
        figures = [short(each) for each in (whole, joins, whole - joins)]
        figures += [f"{one['handed_over']:.3g}", short(behind["p50"]), short(behind["p99"])]
        body.append([name, *figures, f"{behind['longer_than_gap']:.1%}"])
    return markdown(heads, body)


def _floor(cell: Told) -> str:
    body = []
    for way in ("one_row_a_step", "in_batches"):
        for measure, one in cell[way].items():
            told = f"{way.replace('_', ' ')}, {measure.replace('_', ' ')}"
            body.append([told, *(f"{one[figure]:.3g}" for figure in ("tree_us", "probe_us", "over"))])
    return markdown(["measured", "tree, a row", "single probe", "tree / probes"], body)


def _chosen(compared: Sequence[Told]) -> str:
    body = [
        [one["cell"], one["chosen"], one["best"], f"{one['over_best']:.3g}", f"{one['spread']:.2g}"] for one in compared
    ]
    return markdown(["cell", "auto chose", "best", "auto / best", "spread of runs"], body)


def _plain(value: Any) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, int | float) else str(value)


def short(value: float) -> str:
    """Three digits that count."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"


def markdown(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# --- charts ----------------------------------------------------------------------------------------------------------


def panels(cells: Sequence[Told]) -> dict[str, dict[str, Points]]:
    """Latency of rows with a result and state, by what each experiment changes."""
    wanted: list[tuple[str, str, Callable[[Told], float]]] = [
        ("streams", "mean µs to a result", lambda one: one["with_result"]["mean_us"]),
        ("streams", "p99 µs to a result", lambda one: one["with_result"]["p99_us"]),
        ("streams", "rows of state", lambda one: one["state_rows"]),
        ("window", "mean µs to a result", lambda one: one["with_result"]["mean_us"]),
        ("probes", "p50 µs, costly probes", lambda one: one["with_result"]["p50_us"]),
        ("probes", "p99 µs, costly probes", lambda one: one["with_result"]["p99_us"]),
        ("rate", "rows/s in batches", lambda one: one["rows_per_s"]),
        ("rate", "rows of state", lambda one: one["state_rows"]),
    ]
    found: dict[str, dict[str, Points]] = {}
    for experiment, head, figure in wanted:
        here = _in(cells, experiment)
        if here:
            lines: dict[str, Points] = {}
            for name in here[0]["tactics"]:
                lines[name] = [(cell["x"], figure(cell["tactics"][name])) for cell in here]
            found[f"{head}, by {_AXES[experiment]}"] = lines
    return found
