"""The harness: cells x contestants become rows, tables, JSON and a chart, and what was written down can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import harness
from benchmarks.chart import Bars, Panel, write_chart
from benchmarks.harness import (
    Benchmark,
    Experiment,
    Experiments,
    Option,
    Options,
    Outcome,
    Outcomes,
    Table,
    agreed,
    by_contestant,
    lines_of,
    of,
    take_turns,
)
from benchmarks.meters import machine
from benchmarks.registry import BENCHMARKS
from tests.benchmarks.running import is_chart
from transom.core.errors import SinkError, SourceError


def experiments(options: Options) -> Experiments:
    def both(x: int) -> list[Outcome]:
        return [Outcome({"experiment": "size", "x": x}, {"one": {"rows_per_s": x / 2}, "two": None}, {"seen": (x,)})]

    yield Experiment([1, 10], both)
    yield Experiment([1], lambda x: [Outcome({"experiment": "size", "x": x}, {"late": {"rows_per_s": options.rate}})])


def tables(outcomes: Outcomes) -> list[Table]:
    return [by_contestant("Rates:", of(outcomes, "size"), lambda figures: f"{figures['rows_per_s']:g}")]


def panels(outcomes: Outcomes) -> list[Panel | Bars]:
    lines = lines_of(outcomes, lambda figures: figures["rows_per_s"])
    return [Panel("", "x", "rows", lines, log_x=True), Bars("", "cell", "rows", ["1"], {"one": [1.0], "none": [None]})]


SMALL = Benchmark(
    "A small one",
    experiments,
    lambda outcomes: {"cells": len(outcomes), "nested": {"a": {"b": 1}}},
    tables,
    panels,
    lambda options: {"rate": options.rate},
    options=[Option("--rate", "of the late one", {"type": float, "default": 4.0})],
    fails=lambda outcomes: any(outcome.cell["x"] > 5 for outcome in outcomes) and outcomes[0]["late"]["rows_per_s"] > 5,
)


def run(*arguments: str) -> int:
    return harness.run(SMALL, "small", harness.parser("join", SMALL.options).parse_args(arguments))


def test_contestants_that_are_measured_apart_stand_together(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    chart = tmp_path / "small.svg"
    assert run("--json", "--plot", str(chart)) == 0
    printed = capsys.readouterr()
    reported = json.loads(printed.out)
    assert list(reported) == ["machine", "settings", "cells", "summary"] and reported["settings"] == {"rate": 4.0}
    assert reported["cells"] == [
        {
            "experiment": "size",
            "x": 1,
            "seen": [1],
            "contestants": {"one": {"rows_per_s": 0.5}, "two": None, "late": {"rows_per_s": 4.0}},
        },
        {"experiment": "size", "x": 10, "seen": [10], "contestants": {"one": {"rows_per_s": 5.0}, "two": None}},
    ]
    assert "small: 10 ..\n" in printed.err and "one 0.5 rows/s" in printed.err
    assert is_chart(chart)


def test_cells_are_measured_apart(capsys: pytest.CaptureFixture[str]) -> None:
    for patterns in (["1"], ["[1-9]", "seven"]):
        assert run("--json", "--cells", *patterns) == 0
        assert [cell["x"] for cell in json.loads(capsys.readouterr().out)["cells"]] == [1]


def test_what_was_written_down_is_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run("--json")
    (tmp_path / "small.json").write_text(capsys.readouterr().out, encoding="utf-8")
    assert run("--read", str(tmp_path / "small.json")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "| contestant | 1 | 10 |" in lines and "| one | 0.5 | 5 |" in lines
    assert "| two | - | - |" in lines and "| late | 4 | - |" in lines
    assert "| cells | 2 |" in lines and not any("nested" in line for line in lines)
    assert " cores, " in lines[0]


@pytest.mark.parametrize("text", ["", "[]", '{"cells": []}'])
def test_other_files_are_not_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(text, encoding="utf-8")
    for name in ("other.json", "none.json"):
        with pytest.raises(SourceError, match=name):
            run("--read", str(tmp_path / name))


def test_a_fault_is_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json", "--rate", "6") == 1


def test_who_is_first_changes() -> None:
    order: list[str] = []
    take_turns({"a": "a", "b": "b"}, range(3), lambda name, given: order.append(f"{name}{given}"))
    assert order == ["a0", "b0", "b1", "a1", "a2", "b2"]


def test_answers_are_compared() -> None:
    assert agreed({"one": [1, 2], "other": [1, 2]}) == [1, 2]
    with pytest.raises(AssertionError, match="differ"):
        agreed({"one": [1, 2], "other": [2, 1]})
    with pytest.raises(AssertionError, match="no answer"):
        agreed({"one": 0})


def test_every_benchmark_has_its_options_and_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name, entry in BENCHMARKS.items():
        with pytest.raises(SystemExit) as ended:
            harness.main([name, "--help"])
        assert ended.value.code == 0
        reported = " ".join(capsys.readouterr().out.split())
        assert entry.purpose in reported.replace("- ", "-") and "--quick" in reported
    with pytest.raises(SystemExit):
        harness.main(["join", "--soak", "1"])


def test_a_chart_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="cannot be written"):
        write_chart(str(tmp_path / "chart.nonsense"), "t", [Panel("", "x", "y", {"a": [(1, 2)]})])


def test_the_machine_has_a_kind_and_no_name() -> None:
    reported = machine()
    assert reported["cores"] >= 1 and reported["processor"]
    assert {"python", "numpy", "numba", "pyarrow", "sqlglot"} <= reported["versions"].keys()
    assert "node" not in reported and "host" not in reported
