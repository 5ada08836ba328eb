"""Charts are in one style: a name has one look, is explained once, and axes have plain numbers that do not touch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.chart import Bars, Panel, write_chart
from transom.core.errors import SinkError

LINES = {"old": [(1.0, 100.0), (2.0, 900.0), (1000.0, 50_000.0)], "new": [(1.0, 100.0), (2.0, 20.0), (1000.0, 8.0)]}


def drawn(path: Path, *panels: Panel | Bars) -> str:
    write_chart(str(path), "title", panels)
    return path.read_text(encoding="utf-8")


def test_panels_with_the_same_series_are_explained_once(tmp_path: Path) -> None:
    panels = [Panel(title, "rows", "ms", LINES) for title in ("one", "two")]
    alone = Panel("three", "rows", "ms", {"other": [(1.0, 2.0)], "another": [(1.0, 3.0)]})
    text = drawn(tmp_path / "chart.svg", *panels, alone)
    assert len(re.findall(r'<g id="legend_\d+">', text)) == 2
    assert [text.count(f"<!-- {name} -->") for name in ("old", "new", "other", "rows", "ms")] == [1, 1, 1, 3, 3]


def test_a_name_looks_alike_wherever_it_stands(tmp_path: Path) -> None:
    both = Panel("both", "rows", "ms", LINES)
    text = drawn(tmp_path / "chart.svg", Panel("new alone", "rows", "ms", {"new": LINES["new"]}), both)
    colours = re.findall(r'<g id="line2d_\d+">\s*<path d="[^"]*" clip-path="[^"]*" style="[^"]*stroke: (#\w+)', text)
    assert [colours.count(colour) for colour in ("#0072b2", "#d55e00")] == [1, 2]


def test_numbers_are_plain_and_a_narrow_axis_is_not_logarithmic(tmp_path: Path) -> None:
    wide = drawn(tmp_path / "wide.svg", Panel("", "rows", "ms", LINES, log_x=True, log_y=True))
    assert "10^" not in wide and "<!-- 10,000 -->" in wide and "<!-- 1,000 -->" in wide
    narrow = {"a": [(float(second), 1.0 + second) for second in range(1, 6)]}
    text = drawn(tmp_path / "narrow.svg", Panel("", "seconds", "ms", narrow, log_x=True, log_y=True))
    assert "10^" not in text and all(f"<!-- {second} -->" in text for second in range(1, 6))


def test_the_same_figures_are_the_same_file(tmp_path: Path) -> None:
    bars = Bars("", "query", "rows a second", ["q1", "q2"], {"old": [1.0, None], "new": [2.0, 3.0]})
    text = drawn(tmp_path / "one.svg", bars)
    assert text == drawn(tmp_path / "two.svg", bars)
    assert "<!-- query -->" in text and "<!-- rows a second -->" in text


def test_there_is_no_chart_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="nothing to draw"):
        drawn(tmp_path / "chart.svg", Panel("", "rows", "ms", {"a": []}))
