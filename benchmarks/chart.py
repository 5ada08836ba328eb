"""Charts of benchmarks, for people who would rather look than read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from transom.core.errors import SinkError

Points = Sequence[tuple[float, float]]
_IN_A_ROW: Final = 3
_HATCHES: Final = ("", "///", "...", "xx", "--")
"""Bars are told apart by more than colour."""
_FEW: Final = 10
"""Of fewer points than this each has a tick of its own."""


@dataclass(frozen=True)
class Panel:
    """Lines over plain axes or logarithmic ones; `shaded` are spans of x."""

    title: str
    x: str
    y: str
    lines: Mapping[str, Points]
    log_x: bool = False
    log_y: bool = False
    shaded: Sequence[tuple[float, float]] = ()

    def draw(self, axes: Any) -> None:
        paired = len(self.lines) > 3
        for at, (name, points) in enumerate(self.lines.items()):
            look = {"color": f"C{at // 2}", "linestyle": ("-", "--")[at % 2]} if paired else {"color": f"C{at}"}
            marker = "o" if len(points) < _FEW else ""
            axes.plot([x for x, _ in points], [y for _, y in points], label=name, marker=marker, **look)
        for begin, end in self.shaded:
            axes.axvspan(begin, end, color="0.85", linewidth=0)
        if self.log_x:
            axes.set_xscale("log")
        if self.log_y:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        ticks = sorted({x for points in self.lines.values() for x, _ in points})
        if len(ticks) < _FEW:
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.set_xticks([], minor=True)
        axes.set_xlabel(self.x)


@dataclass(frozen=True)
class Bars:
    """Bars side by side in named groups, each with its number on top; None leaves a gap."""

    title: str
    y: str
    groups: Sequence[str]
    bars: Mapping[str, Sequence[float | None]]

    def draw(self, axes: Any) -> None:
        width = 0.8 / max(1, len(self.bars))
        many = len(self.groups) * len(self.bars) > _FEW
        for at, (name, heights) in enumerate(self.bars.items()):
            shown = [(group, height) for group, height in enumerate(heights) if height is not None]
            middles = [group + (at - (len(self.bars) - 1) / 2) * width for group, _ in shown]
            hatch = _HATCHES[at % len(_HATCHES)]
            drawn = axes.bar(
                middles, [height for _, height in shown], width, label=name, hatch=hatch, edgecolor="white"
            )
            axes.bar_label(drawn, fmt="%.2g", fontsize=7, rotation=90 if many else 0, padding=2)
        axes.set_xticks(range(len(self.groups)), self.groups)
        axes.set_ylim(bottom=0)


def write_chart(path: str, title: str, panels: Sequence[Panel | Bars]) -> None:
    """All panels in one file of the kind that its name says (.svg, .png, .pdf)."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SinkError(
            "charts need the package matplotlib, which is not installed", remedy="pip install 'transom[plot]'"
        ) from error
    across = min(_IN_A_ROW, len(panels))
    down = -(-len(panels) // across)
    wide = max((len(panel.groups) for panel in panels if isinstance(panel, Bars)), default=0) > _FEW // 2
    figure = Figure(
        figsize=(10 if wide else 7, 4.5) if len(panels) == 1 else (5 * across, 3.6 * down), layout="constrained"
    )
    figure.suptitle(title)
    grid = figure.subplots(down, across, squeeze=False).flatten()
    for axes, panel in zip(grid, panels, strict=False):
        panel.draw(axes)
        axes.set_title(panel.title, fontsize=10)
        axes.set_ylabel(panel.y)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise SinkError(
            f"the chart cannot be written to '{path}': {error}", remedy="name a file such as chart.svg"
        ) from error
