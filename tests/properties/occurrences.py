"""Counts what the property tests have seen, over all workers, and prints it at the end of the run.

A pytest plugin: how often each pair of window and operator occurred, and how many examples had output at three instants
or more; a run in which fewer than 80 % of the examples had is a failed run, for it tests too little.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

PAIRS: Counter[tuple[str, str]] = Counter()
EXAMPLES: Counter[str] = Counter()
DULL = "drawn again, or dull"
_BROUGHT: Counter[object] = Counter()


def note(pairs: list[tuple[str, str]], instants: int) -> None:
    PAIRS.update(pairs)
    EXAMPLES["all"] += 1
    EXAMPLES["three instants or more"] += instants >= 3
    see(*pairs, *([DULL] if instants < 3 else []))


def begin() -> None:
    """Another example."""
    _BROUGHT.clear()


def see(*what: object) -> None:
    """Something occurred in the example."""
    _BROUGHT.update(what)


def brought() -> Counter[object]:
    """What occurred in the example, each thing once."""
    return Counter(dict.fromkeys(_BROUGHT, 1))


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["pairs"] = [[*pair, n] for pair, n in PAIRS.items()]
        output["examples"] = dict(EXAMPLES)
    elif EXAMPLES["all"] >= 100 and EXAMPLES["three instants or more"] < 0.8 * EXAMPLES["all"]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    output = getattr(node, "workeroutput", {})
    for window, operator, n in output.get("pairs", []):
        PAIRS[window, operator] += n
    EXAMPLES.update(output.get("examples", {}))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not EXAMPLES["all"]:
        return
    write = terminalreporter.write_line
    lively = EXAMPLES["three instants or more"]
    write(f"properties: {EXAMPLES['all']} examples, {lively} with output at three instants or more")
    windows = sorted({window for window, _ in PAIRS})
    operators = sorted({operator for _, operator in PAIRS})
    write(" " * 20 + "".join(f"{window[:10]:>11}" for window in windows))
    for operator in operators:
        write(f"{operator:20}" + "".join(f"{PAIRS[window, operator]:>11}" for window in windows))
