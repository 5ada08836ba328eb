"""The simulation of control traffic, in a small size."""

from __future__ import annotations

import argparse
import json

import pytest

from transom.benchmarks import control


def test_control_grows_with_the_partitions_and_ends_do_not() -> None:
    few, many = (control.measure(partitions, 500, 400) for partitions in (2, 8))
    assert many.passed_on < 5 * few.passed_on
    assert many.ends < 3 * few.ends
    assert many.seen < 20 * few.seen and many.seen < many.seen_first / 2


@pytest.mark.parametrize("as_json", [False, True])
def test_the_benchmark_tells_what_it_has_found(capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    assert control.main(argparse.Namespace(quick=True, json=as_json)) == 0
    told = capsys.readouterr().out
    if as_json:
        found = json.loads(told)
        assert [one["partitions"] for one in found["traffic"]] == list(control.QUICK)
        assert found["summary"]["partitions"] == control.QUICK[-1]
    else:
        assert len(told.splitlines()) == 2 + len(control.QUICK)
