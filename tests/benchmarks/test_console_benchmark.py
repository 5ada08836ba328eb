"""What a watched console costs, in a small size."""

from __future__ import annotations

import pytest

from benchmarks import console
from benchmarks.browser import why_not
from benchmarks.harness import Outcome
from tests.benchmarks.running import quick

if (missing := why_not()) is not None:
    pytest.skip(missing, allow_module_level=True)
pytest.importorskip("starlette", reason="the console is an extra: pip install 'transom[console]'")


def test_pages_are_sent_what_queries_do_meanwhile(capsys: pytest.CaptureFixture[str]) -> None:
    reported = quick(capsys, "console")
    (cell,) = reported["cells"]
    assert {name: one["rate"] > 0 for name, one in cell["contestants"].items()} == dict.fromkeys(console.STATES, True)
    assert cell["contestants"]["closed"]["console_share"] == 0 < reported["summary"]["messages"]
    assert reported["summary"]["cost_share_least"] <= reported["summary"]["cost_share"]
    states, lost = console.tables([Outcome.read(cell)])
    assert [line[0] for line in states.body] == ["closed", "nobody looks", "watched"]
    assert [line[0] for line in lost.body] == ["lost by the clock", "lost by CPU"]
