"""The simulation of control traffic, in a small size."""

from __future__ import annotations

import pytest

from benchmarks import control
from benchmarks.harness import Outcome
from tests.benchmarks.running import quick


def test_control_grows_with_the_partitions_and_ends_do_not() -> None:
    few, many = (control.measure(partitions, 500, 400) for partitions in (2, 8))
    assert many.passed_on < 5 * few.passed_on
    assert many.ends < 3 * few.ends
    assert many.seen < 20 * few.seen and many.seen < many.seen_first / 2


def test_it_ends_in_a_summary(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "QUICK", (2, 4))
    reported = quick(capsys, "control")
    assert [cell["partitions"] for cell in reported["cells"]] == [2, 4]
    assert reported["summary"]["partitions"] == 4
    (table,) = control.tables([Outcome.read(cell) for cell in reported["cells"]])
    assert [line[0] for line in table.body] == ["2", "4"] and table.body[0][-1].endswith(" ms")
