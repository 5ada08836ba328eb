"""What is told of a run of NEXMark: rates of every query and contestant, and what they come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from transom.benchmarks.machine import machine
from transom.benchmarks.nexmark_contestant import Measured
from transom.benchmarks.nexmark_queries import QUERIES, UNWRITTEN

LOCAL, LOCAL_2, ON_SPARK, OWN, FLINK = "transom_local", "transom_local_2", "transom_spark", "spark_own", "flink"
STATEFUL: Final = ("q3", "q5", "q8", "q11", "q12", "q17", "q20")
BESIDE_FLINK: Final = ("q0", "q2", *STATEFUL)
BY_CPU: Final = ("q5", "q12", "q17", "q20")


@dataclass(frozen=True)
class Outcome:
    """One contestant on one query: its runs over `rows` rows of input, and what was wrong, if anything was.

    `refused`: it cannot run the query at all, which is no fault.
    """

    query: str
    contestant: str
    rows: int
    runs: tuple[Measured, ...]
    output_rows: int = 0
    wrong: str = ""
    refused: str = ""

    @property
    def rows_per_s(self) -> float:
        return self.rows / median(run.wall_s for run in self.runs)

    @property
    def rows_per_cpu_s(self) -> float:
        return self.rows / median(run.cpu_s for run in self.runs)


Rates = Mapping[tuple[str, str], Outcome]


def measured(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], Outcome]:
    """By query and contestant, those that have run and are right."""
    return {(one.query, one.contestant): one for one in outcomes if one.runs and not one.wrong}


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Ratios of medians, above 1 where Transom is ahead, but for `local_over_spark_cpu_max`: what Spark costs."""
    found = measured(outcomes)
    queries = [name for name in QUERIES if any(name == query for query, _ in found)]
    over_own = {name: ratio for name in queries if (ratio := _ratio(found, name, (ON_SPARK,), OWN))}
    costs = [
        found[name, LOCAL].rows_per_cpu_s / found[name, ON_SPARK].rows_per_cpu_s
        for name in BY_CPU
        if (name, LOCAL) in found and (name, ON_SPARK) in found
    ]
    return {
        "rows_per_s": _rates(found, queries, "rows_per_s"),
        "rows_per_cpu_s": _rates(found, queries, "rows_per_cpu_s"),
        "spark_over_own": {name: round(ratio, 3) for name, ratio in over_own.items()},
        "spark_over_own_min": _least(over_own.get(name) for name in STATEFUL),
        "local_over_spark_cpu_max": round(max(costs), 3) if costs else None,
        "spark_over_flink_min": _least(_ratio(found, name, (ON_SPARK,), FLINK) for name in BESIDE_FLINK),
        "local_over_flink_min": _least(_ratio(found, name, (LOCAL, LOCAL_2), FLINK) for name in BESIDE_FLINK),
        "right": all(not one.wrong for one in outcomes),
    }


def _ratio(found: Rates, query: str, ours: Sequence[str], theirs: str) -> float | None:
    """By wall rate; the best of ours."""
    rates = [found[query, name].rows_per_s for name in ours if (query, name) in found]
    return max(rates) / found[query, theirs].rows_per_s if rates and (query, theirs) in found else None


def _least(ratios: Iterable[float | None]) -> float | None:
    known = [ratio for ratio in ratios if ratio is not None]
    return round(min(known), 3) if known else None


def _rates(found: Rates, queries: Sequence[str], of: str) -> dict[str, dict[str, int]]:
    return {
        name: {contestant: round(getattr(one, of)) for (query, contestant), one in found.items() if query == name}
        for name in queries
    }


def report(outcomes: Sequence[Outcome], settings: Mapping[str, Any]) -> dict[str, Any]:
    queries: dict[str, Any] = {}
    for one in outcomes:
        query = QUERIES[one.query]
        told = queries.setdefault(
            one.query,
            {"meaning": query.meaning, "instead": query.instead, "input_rows": one.rows, "contestants": {}},
        )
        told["contestants"][one.contestant] = (
            {"refused": one.refused}
            if one.refused
            else {
                "wall_s": [round(run.wall_s, 3) for run in one.runs],
                "cpu_s": [round(run.cpu_s, 2) for run in one.runs],
                "rows_per_s": round(one.rows_per_s) if one.runs else None,
                "rows_per_cpu_s": round(one.rows_per_cpu_s) if one.runs else None,
                "output_rows": one.output_rows,
                "right": not one.wrong,
            }
            | ({"wrong": one.wrong} if one.wrong else {})
        )
    return {
        "machine": machine(),
        "settings": dict(settings),
        "queries": queries,
        "unwritten": dict(UNWRITTEN),
        "summary": summary(outcomes),
    }


def table(outcomes: Sequence[Outcome]) -> str:
    """For people: a line for each query, thousand rows a second of wall and of CPU time."""
    names = list(dict.fromkeys(one.contestant for one in outcomes))
    by_place = {(one.query, one.contestant): one for one in outcomes}
    lines = [
        "Thousand rows a second, and in brackets a CPU second:",
        f"{'':6}" + "".join(f"{name:>20}" for name in names),
    ]
    for query in dict.fromkeys(one.query for one in outcomes):
        lines.append(f"{query:6}" + "".join(f"{_cell(by_place.get((query, name))):>20}" for name in names))
    lines.append("")
    for name, value in summary(outcomes).items():
        if not name.startswith("rows_per"):
            shown = ", ".join(f"{key} {ratio}" for key, ratio in value.items()) if isinstance(value, dict) else value
            lines.append(f"{name:26}{'-' if shown is None else shown}")
    return "\n".join(lines)


def _cell(one: Outcome | None) -> str:
    if one is None or one.refused:
        return "-"
    if one.wrong:
        return "WRONG"
    return f"{one.rows_per_s / 1000:,.0f} ({one.rows_per_cpu_s / 1000:,.0f})"


def bars(outcomes: Sequence[Outcome]) -> tuple[list[str], dict[str, list[float | None]]]:
    """The queries, and of each contestant its rate in them, in million rows a second."""
    found = measured(outcomes)
    queries = list(dict.fromkeys(query for query, _ in found))
    names = list(dict.fromkeys(name for _, name in found))
    return queries, {
        name: [found[query, name].rows_per_s / 1e6 if (query, name) in found else None for query in queries]
        for name in names
    }
