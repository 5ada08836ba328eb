"""Part a: which work of a shared join goes first when not all can be done, the experiment of paper 2.

The nine cases by every policy; then, unless the run is quick, other readings of the paper, other arrival plans, plans
drawn at random, and which assumption fails where the new policy drops more. It is a simulation: it has no noise and is
the same on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from benchmarks.chart import Bars, Panel
from benchmarks.harness import Benchmark, Experiment, Experiments, Figures, Options, Outcome, Outcomes, Table, of
from benchmarks.shared.assumptions import OLD, RESTORED, as_drawn, drawn, miss, restored
from benchmarks.shared.cases import CASES, OTHER_PLANS, PLAN, WORLD
from benchmarks.shared.scheduling import (
    NEW,
    OURS,
    POLICIES,
    VARIED,
    Case,
    Seed,
    plan_name,
    reading_name,
    run_case,
    run_reading,
    run_seeds,
)
from transom.scheduling.load import LoadMethod
from transom.scheduling.simulation import SimulatedStage

SEEDS: Final = 50
CHARTED: Final = "P4"
"""The case whose course is drawn: MandF and adMandF switch most in it."""

PART: Final = {"part": "a"}


def experiments(options: Options) -> Experiments:
    cases: list[Case] = []

    def by_case(name: str) -> list[Outcome]:
        cases.append(run_case(name, PLAN))
        return [outcome_of(cases[-1])]

    yield Experiment(list(CASES), by_case)
    yield Experiment([reading_name({})], lambda name: [_failing("reading", name, cases)])
    if options.quick:
        return
    readings = {reading_name(changed): changed for changed in VARIED[1:]}
    yield Experiment(list(readings), lambda name: [_failing("reading", name, run_reading(readings[name], cases, PLAN))])
    plans = {plan_name(plan): plan for plan in OTHER_PLANS}
    yield Experiment(
        list(plans), lambda name: [_failing("plan", name, [run_case(case, plans[name]) for case in CASES])]
    )
    yield Experiment([f"{SEEDS} arrival plans"], lambda _: by_chance())


def outcome_of(case: Case) -> Outcome:
    cell = {**PART, "experiment": "case", "case": case.name, "windows": case.windows, "groups": case.groups}
    policies = {
        name: {"stages": [_stage(stage) for stage in one.stages], "trace": asdict(one.trace)}
        for name, one in case.outcomes.items()
    }
    about = {
        "fingerprint": case.fingerprint,
        "shows": case.shows,
        "claims": case.claims,
        "over_best_other": case.over_best_other,
        "slack_over_admandf": case.outcomes[OURS].last.processed / case.outcomes[NEW].last.processed,
    }
    return Outcome(cell, policies, about)


def _stage(stage: SimulatedStage) -> dict[str, Any]:
    counts = {**asdict(stage.ledger), "incomplete": stage.incomplete}
    shares = {"processed": stage.processed, "dropped": stage.dropped, "complete": stage.complete}
    return {**counts, "shares": {name: round(value, 5) for name, value in shares.items()}}


def _failing(experiment: str, name: str, cases: Sequence[Case]) -> Outcome:
    """The cases in which something does not hold."""
    failures = {
        "fingerprint": [case.name for case in cases if not case.shows],
        "drops": [case.name for case in cases if not case.claims["drops_none"]],
        "below_another": [case.name for case in cases if not case.claims["at_least_the_others"]],
        "not_mqt": [case.name for case in cases if not case.claims.get("equals_mqt", True)],
    }
    return Outcome({**PART, "experiment": experiment, "name": name}, {}, {"failures": failures})


def by_chance() -> Iterator[Outcome]:
    """Plans drawn at random, and the assumptions of the paper under those in which adMandF drops more than MandF."""
    every = run_seeds(SEEDS, PLAN.intervals)
    first = every[:SEEDS]
    groups = {
        "any": first,
        "that FIFO serves without a drop": [one for one in every if one.served][:SEEDS],
        "that FIFO does not serve": [one for one in first if not one.served],
    }
    for name, some in groups.items():
        yield Outcome({**PART, "experiment": "seeds", "name": name}, {}, {"found": of_seeds(some)})
    counts = as_drawn(first)
    for name, changes in RESTORED.items():
        counts[name] = restored(changes, len(first), PLAN.intervals)
    misses = [miss(seed, drawn(seed, PLAN.intervals)) for seed in counts["as drawn"].more]
    found = {
        "misses": [asdict(miss) for miss in misses],
        "counts": {name: {**asdict(count), "no_more": count.no_more} for name, count in counts.items()},
    }
    yield Outcome({**PART, "experiment": "assumptions"}, {}, found)


def of_seeds(seeds: Sequence[Seed]) -> dict[str, Any]:
    return {
        "seeds": len(seeds),
        "admandf_drops_no_more_than_mandf": sum(seed.drops_no_more(NEW, OLD) for seed in seeds),
        "slack_drops_no_more_than_mandf": sum(seed.drops_no_more(OURS, OLD) for seed in seeds),
        "slack_drops_no_more_than_admandf": sum(seed.drops_no_more(OURS, NEW) for seed in seeds),
        "slack_processes_no_less_than_admandf": sum(seed.processes_no_less(OURS, NEW) for seed in seeds),
        "mean_dropped": {name: _mean([seed.dropped[name] for seed in seeds]) for name in POLICIES},
        "mean_processed": {name: _mean([seed.processed[name] for seed in seeds]) for name in POLICIES},
        "admandf_drops_more": [
            {"seed": seed.seed, "rates": seed.plan.rates, "dropped": dict(seed.dropped)}
            for seed in seeds
            if not seed.drops_no_more(NEW, OLD)
        ],
    }


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / max(1, len(values)), 5)


def settings(options: Options) -> dict[str, Any]:
    return {"plan": asdict(PLAN), **asdict(WORLD)}


# --- what it comes to ------------------------------------------------------------------------------------------------


def summary(outcomes: Outcomes) -> dict[str, Any]:
    cases = {one.cell["case"]: one for one in of(outcomes, "case")}
    found: dict[str, Any] = {
        "admandf_drops": {name: _last(one, NEW)["shed"] for name, one in cases.items()},
        "admandf_over_best_other": {name: round(one.cell["over_best_other"], 5) for name, one in cases.items()},
        "slack_drops": {name: _last(one, OURS)["shed"] for name, one in cases.items()},
        "slack_over_admandf": {name: round(one.cell["slack_over_admandf"], 5) for name, one in cases.items()},
        "fingerprint": {name: one.cell["fingerprint"] for name, one in cases.items()},
        "fingerprint_shown": all(one.cell["shows"] for one in cases.values()),
        "claims": {name: one.cell["claims"] for name, one in cases.items()},
        "readings": {one.cell["name"]: one.cell["failures"] for one in of(outcomes, "reading")},
        "other_plans": {one.cell["name"]: one.cell["failures"] for one in of(outcomes, "plan")},
        "seeds": {one.cell["name"]: one.cell["found"] for one in of(outcomes, "seeds")},
    }
    for one in of(outcomes, "assumptions"):
        found["assumptions"] = {name: one.cell[name] for name in ("misses", "counts")}
    return found


def _last(outcome: Outcome, policy: str) -> Figures:
    last: Figures = outcome[policy]["stages"][-1]
    return last


def tables(outcomes: Outcomes) -> list[Table]:
    cases = of(outcomes, "case")
    shares = [
        [one.cell["case"], one.cell["groups"], *(_shares(_last(one, name)["shares"]) for name in POLICIES)]
        for one in cases
    ]
    over = [f"{one.cell['over_best_other']:.4f}" for one in cases]
    held = [[one.cell["case"], _holds(one.cell["fingerprint"]), _holds(one.cell["claims"])] for one in cases]
    found = [
        Table(
            "Share of all work due that was processed and dropped by the end, and, in brackets, processed while all "
            "partners were still there; in %:",
            ["case", "MQT groups", *POLICIES, "admandf / best of fifo, mqt, mandf"],
            [[*line, ratio] for line, ratio in zip(shares, over, strict=True)],
        ),
        Table(
            "The fingerprint of the older policies, and what the paper says of adMandF:",
            ["case", "fingerprint", "admandf"],
            held,
        ),
    ]
    for experiment, title, head in (
        ("reading", "Readings: the cases in which something does not hold.", "reading"),
        (
            "plan",
            "Other plans that show the fingerprint: the cases in which something does not hold.",
            "rows in an interval, by stage",
        ),
    ):
        if here := of(outcomes, experiment):
            heads = [head, "fingerprint fails", "admandf drops", "admandf below another", "admandf is not mqt"]
            failed = [[one.cell["name"], *map(_list, one.cell["failures"].values())] for one in here]
            found.append(Table(title, heads, failed))
    if seeds := of(outcomes, "seeds"):
        found.append(_seeds(seeds))
    for one in of(outcomes, "assumptions"):
        found += _assumptions(one.cell)
    return found


def _seeds(outcomes: Outcomes) -> Table:
    columns = [one.cell["found"] for one in outcomes]
    counts = [name for name, value in columns[0].items() if isinstance(value, int)]
    body = [[name.replace("_", " "), *(str(one[name]) for one in columns)] for name in counts]
    for share in ("dropped", "processed"):
        body += [
            [f"mean {share} by {name}, %", *(f"{100 * one[f'mean_{share}'][name]:.2f}" for one in columns)]
            for name in POLICIES
        ]
    title = "Arrival plans drawn at random, with random windows:"
    return Table(title, ["plans", *(one.cell["name"] for one in outcomes)], body)


def _assumptions(found: Figures) -> list[Table]:
    missed = [
        [
            str(one["seed"]),
            *(f"{100 * one['dropped'][name]:.2f}" for name in ("fifo", OLD, NEW)),
            f"{one['parted']:g}",
            str(one["case"] or "none"),
            one["method"],
            "yes" if one["is_fifo"] else "no",
        ]
        for one in found["misses"]
    ]
    counted = [
        [
            name,
            str(one["plans"]),
            str(one["no_more"]),
            _list([str(seed) for seed in one["more"]]),
            *(f"{100 * one['mean_dropped'][policy]:.2f}" for policy in (OLD, NEW)),
        ]
        for name, one in found["counts"].items()
    ]
    return [
        Table(
            "Which assumption fails: the plans under which admandf drops more than mandf, from when on for good, and "
            "what was in force when most of the excess was dropped.",
            ["seed", "fifo, %", "mandf, %", "admandf, %", "from, s", "case", "method", "as FIFO throughout"],
            missed,
        ),
        Table(
            "The same plans with an assumption made to hold:",
            ["plans", "number", "admandf drops no more", "it drops more: seeds", "mandf, mean %", "admandf, mean %"],
            counted,
        ),
    ]


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "-"


def _holds(found: Mapping[str, bool]) -> str:
    return ", ".join(f"{what}: {'yes' if holds else 'NO'}" for what, holds in found.items())


def _shares(shares: Figures) -> str:
    return f"{100 * shares['processed']:.2f} {100 * shares['dropped']:.2f} ({100 * shares['complete']:.1f})"


def panels(outcomes: Outcomes) -> list[Panel | Bars]:
    """The course of one case over time, then what was not processed and what was dropped, stage by stage."""
    cases = of(outcomes, "case")
    charted = next((one for one in cases if one.cell["case"] == CHARTED), cases[0])
    courses = [panel for name in (OLD, NEW) for panel in _course(charted, name)]
    return [*courses, *map(_stages, cases), _dropped(cases)]


def _course(outcome: Outcome, name: str) -> list[Panel]:
    trace = outcome[name]["trace"]
    about = f"{outcome.cell['case']}, {name}: "

    def line(figure: str) -> list[tuple[float, float]]:
        return list(zip(trace["time"], trace[figure], strict=True))

    return [
        Panel(about + what, "seconds", unit, lines, shaded=_fifo_spans(trace))
        for what, unit, lines in (
            ("arrivals", "rows in an interval", {"arrival rate": line("rate")}),
            ("load", "S and its threshold", {"load S": line("load"), "threshold": line("alpha")}),
            ("weight (shaded: FIFO in use)", "beta", {"beta": line("beta")}),
        )
    ]


def _fifo_spans(trace: Figures) -> list[tuple[float, float]]:
    """From when to when FIFO was in use."""
    found: list[tuple[float, float]] = []
    for begin, end, method in zip(trace["time"], trace["time"][1:], trace["method"], strict=False):
        if method == LoadMethod.FIFO:
            joined = found and found[-1][1] == begin
            found.append((found.pop()[0] if joined else begin, end))
    return found


def _stages(outcome: Outcome) -> Panel:
    lines = {
        name: [(at, 100 * (1 - one["shares"]["processed"])) for at, one in enumerate(outcome[name]["stages"], 1)]
        for name in POLICIES
    }
    return Panel(f"{outcome.cell['case']}: not processed", "stage", "% of what was due so far", lines)


def _dropped(outcomes: Outcomes) -> Bars:
    """At the end, of the policies that drop anything at all."""
    shares = {name: [100 * one[name]["stages"][-1]["shares"]["dropped"] for one in outcomes] for name in POLICIES}
    some = {name: heights for name, heights in shares.items() if any(heights)} or shares
    return Bars(
        "dropped by the end",
        "priorities of the queries",
        "% of what was due",
        [one.cell["case"] for one in outcomes],
        some,
    )


POLICIES_PART: Final = Benchmark(
    "Which work of a shared join is done first", experiments, summary, tables, panels, settings
)
