"""What the parts of the experiment have in common: phases that contestants go through, and what they come to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from benchmarks.harness import Figures, Outcome, digits, medians, take_turns
from benchmarks.joinagg.contestants import Running
from benchmarks.joinagg.data import Brought
from transom.core.delta import Delta
from transom.kernels.changing import ChangingState
from transom.pipeline.memory import state_bytes

ADAPTIVE: Final = "adaptive"

Steps = Callable[[], Iterator[tuple[int, Brought]]]
"""The phase of every step and what the step brings; the same rows whenever it is asked."""


def measured(
    begin: Callable[[str], Running], contestants: Sequence[str], steps: Steps, seen: Callable[[Delta], Any], runs: int
) -> tuple[list[dict[str, Figures]], list[str]]:
    """By phase what every contestant took, medians of the runs, and the changes of the one that changes.

    What is `seen` of the answer must be the same for all of them after every step.
    """
    answers: dict[str, list[Any]] = {}
    changes: list[str] = []

    def run(name: str, number: int) -> list[dict[str, float]]:
        running = begin(name)
        of_phases: list[dict[str, float]] = []
        last = []
        at = 0
        for phase, step in steps():
            if phase != at:
                of_phases.append(_figures(running))
                running.reset()
                at = phase
            last.append(seen(running.take(step)))
        of_phases.append(_figures(running))
        answers.setdefault(name, last)
        if name == ADAPTIVE:
            changes[:] = _changes(running)
        running.close()
        return of_phases

    taken = take_turns({name: name for name in contestants}, range(runs), run)
    _agreed(answers)
    phases = range(len(taken[ADAPTIVE][0]))
    figures = [{name: medians([of_run[at] for of_run in taken[name]]) for name in contestants} for at in phases]
    return [{name: _with_rate(each) for name, each in of_phase.items()} for of_phase in figures], changes


def compile_first(begin: Callable[[str], Running], contestants: Sequence[str], steps: Steps) -> None:
    """A few steps by everybody, so that nobody's time has the compiler's in it."""
    for name in contestants:
        running = begin(name)
        for _, step in steps():
            running.take(step)
        running.close()


def _agreed(answers: Mapping[str, list[Any]]) -> None:
    first, expected = next(iter(answers.items()))
    for name, found in answers.items():
        steps = [at for at, (a, b) in enumerate(zip(expected, found, strict=True)) if a != b]
        assert not steps, f"{first} and {name} differ in step {steps[0]}: {expected[steps[0]]} and {found[steps[0]]}"


def _figures(running: Running) -> dict[str, float]:
    return {
        "seconds": running.seconds,
        "rows": float(running.rows),
        "state_bytes": float(state_bytes(running.state.operators)),
    }


def _with_rate(figures: dict[str, float]) -> Figures:
    return {
        "rows_per_s": round(figures["rows"] / figures["seconds"]),
        "us_per_row": digits(1e6 * figures["seconds"] / figures["rows"]),
        "seconds": digits(figures["seconds"]),
        "state_bytes": round(figures["state_bytes"]),
    }


def _changes(running: Running) -> list[str]:
    """When the tactic changed, and why."""
    states = [state for of_one in running.state.operators for state in of_one if isinstance(state, ChangingState)]
    return [str(change) for state in states for change in state.changes]


def summary(outcomes: Sequence[Outcome], fixed: Sequence[str]) -> dict[str, Any]:
    """`adaptive_over_best_max`: how many times as long as the best tactic of a phase that stays, at most.
    `fixed_over_adaptive_min`: how many times as long as it any tactic that stays takes for the whole, at least."""
    over_best = [outcome[ADAPTIVE]["seconds"] / min(outcome[name]["seconds"] for name in fixed) for outcome in outcomes]
    names = list(outcomes[0].contestants)
    whole = {name: sum(outcome[name]["seconds"] for outcome in outcomes) for name in names}
    over = {name: round(whole[name] / whole[ADAPTIVE], 3) for name in names if name != ADAPTIVE}
    return {
        "adaptive_over_best_max": round(max(over_best), 3),
        "fixed_over_adaptive_min": min(over[name] for name in fixed),
        "over_adaptive": over,
        "seconds": {name: digits(seconds) for name, seconds in whole.items()},
    }
