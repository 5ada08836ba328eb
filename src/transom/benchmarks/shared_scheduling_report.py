"""What the experiment with the policies came to: tables in Markdown, a summary, and the panels of a chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from transom.benchmarks.chart import Panel
from transom.benchmarks.shared_scheduling import NEW, OURS, POLICIES, Case, Seed
from transom.scheduling.load import Method
from transom.scheduling.simulation import Outcome, Stage

CHARTED: Final = "P4"
"""The case whose course is drawn: MandF and adMandF switch most in it."""


@dataclass(frozen=True)
class Findings:
    """Cases by the plan and the default reading, then by other readings, other plans, and plans drawn at random."""

    cases: Sequence[Case]
    readings: Mapping[str, Sequence[Case]]
    plans: Mapping[str, Sequence[Case]]
    seeds: Mapping[str, Sequence[Seed]]


def summary(found: Findings) -> dict[str, Any]:
    cases = found.cases
    return {
        "admandf_drops": {case.name: case.outcomes[NEW].last.ledger.shed for case in cases},
        "admandf_over_best_other": {case.name: round(case.over_best_other, 5) for case in cases},
        "slack_drops": {case.name: case.outcomes[OURS].last.ledger.shed for case in cases},
        "slack_over_admandf": {case.name: round(_ratio(case), 5) for case in cases},
        "fingerprint": {case.name: case.fingerprint for case in cases},
        "fingerprint_shown": all(case.shows for case in cases),
        "claims": {case.name: case.claims for case in cases},
        "readings": {name: failures(some) for name, some in found.readings.items()},
        "other_plans": {name: failures(some) for name, some in found.plans.items()},
        "seeds": {name: _of_seeds(some) for name, some in found.seeds.items()},
    }


def failures(cases: Sequence[Case]) -> dict[str, list[str]]:
    """The cases in which something does not hold."""
    return {
        "fingerprint": [case.name for case in cases if not case.shows],
        "drops": [case.name for case in cases if not case.claims["drops_none"]],
        "below_another": [case.name for case in cases if not case.claims["at_least_the_others"]],
        "not_mqt": [case.name for case in cases if not case.claims.get("equals_mqt", True)],
    }


def _ratio(case: Case) -> float:
    return case.outcomes[OURS].last.processed / case.outcomes[NEW].last.processed


def _of_seeds(seeds: Sequence[Seed]) -> dict[str, Any]:
    return {
        "seeds": len(seeds),
        "admandf_drops_no_more_than_mandf": sum(seed.drops_no_more(NEW, "mandf") for seed in seeds),
        "slack_drops_no_more_than_mandf": sum(seed.drops_no_more(OURS, "mandf") for seed in seeds),
        "slack_drops_no_more_than_admandf": sum(seed.drops_no_more(OURS, NEW) for seed in seeds),
        "slack_processes_no_less_than_admandf": sum(seed.processes_no_less(OURS, NEW) for seed in seeds),
        "mean_dropped": {name: _mean([seed.dropped[name] for seed in seeds]) for name in POLICIES},
        "mean_processed": {name: _mean([seed.processed[name] for seed in seeds]) for name in POLICIES},
        "admandf_drops_more": [
            {"seed": seed.seed, "rates": seed.plan.rates, "dropped": dict(seed.dropped)}
            for seed in seeds
            if not seed.drops_no_more(NEW, "mandf")
        ],
    }


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / max(1, len(values)), 5)


def told(case: Case) -> dict[str, Any]:
    """A case for programs."""
    policies = {
        name: {
            "stages": [_stage(stage) for stage in outcome.stages],
            "trace": asdict(outcome.trace),
        }
        for name, outcome in case.outcomes.items()
    }
    return {"case": case.name, "windows": case.windows, "groups": case.groups, "policies": policies}


def _stage(stage: Stage) -> dict[str, Any]:
    counts = {**asdict(stage.ledger), "incomplete": stage.incomplete}
    shares = {"processed": stage.processed, "dropped": stage.dropped, "complete": stage.complete}
    return {**counts, "shares": {name: round(value, 5) for name, value in shares.items()}}


def tables(found: Findings) -> str:
    """All figures, for people."""
    parts = [
        "Share of all work due that was processed and dropped by the end, and, in brackets, processed while all "
        "partners were still there; in %:",
        markdown(
            ["case", "MQT groups", *POLICIES, "admandf / best of fifo, mqt, mandf"],
            [
                [
                    case.name,
                    case.groups,
                    *(_shares(case.outcomes[name].last) for name in POLICIES),
                    f"{case.over_best_other:.4f}",
                ]
                for case in found.cases
            ],
        ),
        "The fingerprint of the older policies, and what the paper says of adMandF:",
        markdown(
            ["case", "fingerprint", "admandf"],
            [[case.name, _holds(case.fingerprint), _holds(case.claims)] for case in found.cases],
        ),
        "Readings: the cases in which something does not hold.",
        _failed("reading", found.readings),
    ]
    if found.plans:
        parts += ["Other plans that show the fingerprint: the cases in which something does not hold."]
        parts += [_failed("rows in an interval, by stage", found.plans)]
    if found.seeds:
        parts += ["Arrival plans drawn at random, with random windows:", _seeds(found.seeds)]
    return "\n\n".join(parts)


def _failed(of: str, found: Mapping[str, Sequence[Case]]) -> str:
    heads = [of, "fingerprint fails", "admandf drops", "admandf below another", "admandf is not mqt"]
    return markdown(heads, [[name, *map(_list, failures(some).values())] for name, some in found.items()])


def _seeds(seeds: Mapping[str, Sequence[Seed]]) -> str:
    told = {name: _of_seeds(some) for name, some in seeds.items()}
    counts = [name for name, value in next(iter(told.values())).items() if isinstance(value, int)]
    body = [[name.replace("_", " "), *(str(one[name]) for one in told.values())] for name in counts]
    for share in ("dropped", "processed"):
        body += [
            [f"mean {share} by {name}, %", *(f"{100 * one[f'mean_{share}'][name]:.2f}" for one in told.values())]
            for name in POLICIES
        ]
    return markdown(["plans", *told], body)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "-"


def _holds(told: Mapping[str, bool]) -> str:
    return ", ".join(f"{what}: {'yes' if holds else 'NO'}" for what, holds in told.items())


def _shares(stage: Stage) -> str:
    return f"{100 * stage.processed:.2f} {100 * stage.dropped:.2f} ({100 * stage.complete:.1f})"


def panels(cases: Sequence[Case]) -> list[Panel]:
    """The course of one case over time, then what was not processed and what was dropped, stage by stage."""
    drawn = next((case for case in cases if case.name == CHARTED), cases[0])
    courses = [_course(drawn, name) for name in ("mandf", NEW)]
    return [panel for course in courses for panel in course] + [_stages(case) for case in cases]


def _course(case: Case, name: str) -> list[Panel]:
    trace = case.outcomes[name].trace
    fifo = _fifo_spans(case.outcomes[name])
    about = f"{case.name}, {name}: "
    rate = [float(value) for value in trace.rate]
    load = {"load S": (trace.time, trace.load), "threshold": (trace.time, trace.alpha)}
    return [
        Panel(about + "rows in an interval", "s", "", {"arrival rate": (trace.time, rate)}, fifo),
        Panel(about + "load", "s", "", load, fifo),
        Panel(about + "beta (shaded: FIFO in use)", "s", "", {"beta": (trace.time, trace.beta)}, fifo),
    ]


def _fifo_spans(outcome: Outcome) -> list[tuple[float, float]]:
    """From when to when FIFO was in use."""
    trace = outcome.trace
    found: list[tuple[float, float]] = []
    for begin, end, method in zip(trace.time, trace.time[1:], trace.method, strict=False):
        if method == Method.FIFO:
            joined = found and found[-1][1] == begin
            found.append((found.pop()[0] if joined else begin, end))
    return found


def _stages(case: Case) -> Panel:
    lines = {}
    for name in POLICIES:
        stages = case.outcomes[name].stages
        at = [float(number) for number in range(1, len(stages) + 1)]
        lines[name] = (at, [100 * (1 - stage.processed) for stage in stages])
        lines[f"{name}, dropped"] = (at, [100 * stage.dropped for stage in stages])
    return Panel(f"{case.name}: not processed, and dropped", "stage", "% of what was due so far", lines)


def markdown(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
