"""Charts of benchmarks, for people who would rather look than read: one style, whatever they show.

A series is told from the others by its colour, its marker and its dashes; one that lies on another shows around it.
Panels with the same series have one legend. A logarithmic axis is one of at least a decade, and has plain numbers;
numbers that would touch are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from transom.core.errors import SinkError

Points = Sequence[tuple[float, float]]
_IN_A_ROW: Final = 3
_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#7f7f7f")
"""Of Okabe and Ito: they stay apart for those who see fewer colours."""
_MARKERS: Final = ("o", "s", "^", "D", "v", "x")
_DASHES: Final = ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)), (0, (1, 1)), (0, (8, 3)))
_HATCHES: Final = ("", "///", "...", "xx", "--", "++")
_FEW: Final = 12
"""Of fewer points than this each has a marker, and a tick of its own where there is room."""
_LETTER: Final = 0.027
"""The share of an axis that a letter below it takes."""
_SAME: Final = 0.02


@dataclass(frozen=True)
class Panel:
    """Lines over plain axes or, where asked and of use, logarithmic ones; `shaded` are spans of x."""

    title: str
    x: str
    y: str
    lines: Mapping[str, Points]
    log_x: bool = False
    log_y: bool = False
    shaded: Sequence[tuple[float, float]] = ()

    @property
    def series(self) -> tuple[str, ...]:
        return tuple(name for name, points in self.lines.items() if points)

    def draw(self, axes: Any, looks: Mapping[str, int]) -> None:
        drawn = [[(x, y) for x, y in points if math.isfinite(y)] for points in self.lines.values()]
        for at, (name, points) in enumerate(zip(self.lines, drawn, strict=True)):
            if not points:
                continue
            look = looks[name]
            covered = sum(_lies_on(other, points) for other in drawn[at + 1 :])
            axes.plot(
                [x for x, _ in points],
                [y for _, y in points],
                label=name,
                color=_COLOURS[look % len(_COLOURS)],
                linestyle=_DASHES[(look + look // len(_COLOURS)) % len(_DASHES)],
                marker=_MARKERS[(look + look // len(_COLOURS)) % len(_MARKERS)] if len(points) < _FEW else "",
                markersize=4 + 2.5 * covered,
                linewidth=1.4 + 2 * covered,
            )
        for begin, end in self.shaded:
            axes.axvspan(begin, end, color="0.88", linewidth=0)
        places = sorted({x for points in drawn for x, _ in points})
        if self.log_x and _wide(places):
            _logarithmic(axes, axes.xaxis, axes.set_xscale)
        if len(places) < _FEW:
            shown = _with_room(places, axes.get_xscale() == "log")
            axes.set_xticks(shown, [_plain(tick) for tick in shown])
            axes.set_xticks([], minor=True)
        if self.log_y and _wide([y for points in drawn for _, y in points]):
            _logarithmic(axes, axes.yaxis, axes.set_yscale)
        else:
            axes.set_ylim(bottom=0)
        axes.set_xlabel(self.x)


@dataclass(frozen=True)
class Bars:
    """Bars side by side in named groups, each with its number on top; None leaves a gap."""

    title: str
    x: str
    y: str
    groups: Sequence[str]
    bars: Mapping[str, Sequence[float | None]]

    @property
    def series(self) -> tuple[str, ...]:
        return tuple(self.bars)

    def draw(self, axes: Any, looks: Mapping[str, int]) -> None:
        width = 0.8 / max(1, len(self.bars))
        many = len(self.groups) * len(self.bars) > _FEW
        for at, (name, heights) in enumerate(self.bars.items()):
            shown = [(group, height) for group, height in enumerate(heights) if height is not None]
            middles = [group + (at - (len(self.bars) - 1) / 2) * width for group, _ in shown]
            drawn = axes.bar(
                middles,
                [height for _, height in shown],
                width,
                label=name,
                color=_COLOURS[looks[name] % len(_COLOURS)],
                hatch=_HATCHES[(looks[name] + looks[name] // len(_COLOURS)) % len(_HATCHES)],
                edgecolor="white",
            )
            axes.bar_label(
                drawn,
                labels=[_plain(float(f"{height:.2g}")) for _, height in shown],
                fontsize=7,
                rotation=90 if many else 0,
                padding=2,
            )
        axes.set_xticks(range(len(self.groups)), self.groups, fontsize=8 if len(self.groups) > _FEW // 2 else 10)
        axes.margins(y=0.1)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(self.x)


def write_chart(path: str, title: str, panels: Sequence[Panel | Bars]) -> None:
    """All panels in one file of the kind that its name says (.svg, .png, .pdf)."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter
    except ImportError as error:
        raise SinkError(
            "charts need the package matplotlib, which is not installed", remedy="pip install 'transom[plot]'"
        ) from error
    shown = [panel for panel in panels if not isinstance(panel, Panel) or any(panel.lines.values())]
    if not shown:
        raise SinkError("there is nothing to draw: no contestant of this run has a figure")
    across = min(_IN_A_ROW, len(shown))
    down = -(-len(shown) // across)
    wide = max((len(panel.groups) for panel in shown if isinstance(panel, Bars)), default=0) > _FEW // 2
    size = (10 if wide else 7, 4.5) if len(shown) == 1 else (4.6 * across, 3.4 * down)
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(title)
    grid = figure.subplots(down, across, squeeze=False).flatten()
    groups = _groups(shown)
    for axes, panel in zip(grid, shown, strict=False):
        alike, names = next((alike, names) for alike, names in groups if panel in alike)
        panel.draw(axes, {name: at for at, name in enumerate(names)})
        axes.set_title(panel.title, fontsize=10)
        axes.set_ylabel(panel.y)
        if axes.get_yscale() == "linear" and axes.get_ylim()[1] >= 1000:
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
        if len(alike) == 1 and len(names) > 1:
            axes.legend(fontsize=7, handlelength=3.5)
    empty = list(grid[len(shown) :])
    for axes in empty:
        axes.set_axis_off()
    for alike, names in groups:
        if len(alike) == 1 or len(names) == 1:
            continue
        handles = {
            name: handle
            for axes, panel in zip(grid, shown, strict=False)
            if panel in alike
            for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        listed = [handles[name] for name in names]
        if empty:
            empty.pop(0).legend(listed, names, loc="center", handlelength=4)
        else:
            figure.legend(listed, names, loc="outside lower center", ncols=min(6, len(names)), handlelength=4)
    try:
        with rc_context({"svg.hashsalt": "transom"}):
            figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)
    except (OSError, ValueError) as error:
        raise SinkError(
            f"the chart cannot be written to '{path}': {error}", remedy="name a file such as chart.svg"
        ) from error


def _groups(panels: Sequence[Panel | Bars]) -> list[tuple[list[Panel | Bars], list[str]]]:
    """Panels that have series in common, and these: they look alike in all of them, and are explained once.

    >>> one, two, three = (Panel(name, "", "", {line: [(1, 1)] for line in name}) for name in ("ab", "bc", "x"))
    >>> [names for _, names in _groups([one, two, three])]
    [['a', 'b', 'c'], ['x']]
    """
    groups: list[tuple[list[Panel | Bars], list[str]]] = []
    for panel in panels:
        near = [group for group in groups if type(group[0][0]) is type(panel) and {*group[1]} & {*panel.series}]
        alike = [each for group in near for each in group[0]] + [panel]
        names = list(dict.fromkeys(name for each in sorted(alike, key=_number_of_series) for name in each.series))
        groups = [group for group in groups if group not in near] + [(alike, names)]
    return groups


def _number_of_series(panel: Panel | Bars) -> int:
    """The panel with the most of them comes first: it has them in their order."""
    return -len(panel.series)


def _lies_on(line: Points, other: Points) -> bool:
    """Whether a line would hide another.

    >>> _lies_on([(1, 2.0), (2, 4.0)], [(1, 2.01), (2, 4.0)]), _lies_on([(1, 2.0)], [(1, 3.0)])
    (True, False)
    """
    there = dict(line)
    near = [abs(there[x] - y) <= _SAME * max(abs(y), abs(there[x])) for x, y in other if x in there]
    return bool(other) and sum(near) >= 0.8 * len(other)


def _wide(values: Sequence[float]) -> bool:
    """Whether values deserve a logarithmic axis: all positive, and a decade at least.

    >>> _wide([1, 5]), _wide([1, 500]), _wide([0, 500])
    (False, True, False)
    """
    return bool(values) and min(values) > 0 and max(values) >= 10 * min(values)


def _with_room(ticks: Sequence[float], logarithmic: bool) -> list[float]:
    """Those whose numbers do not touch; the last is always there.

    >>> _with_room([1, 2, 50, 99, 100], False)
    [1, 50, 100]
    """
    if len(ticks) < 2:
        return list(ticks)
    spots = [math.log(tick) for tick in ticks] if logarithmic else list(ticks)

    def apart(left: int, right: int) -> bool:
        letters = (len(_plain(ticks[left])) + len(_plain(ticks[right]))) / 2 + 1
        return abs(spots[left] - spots[right]) >= _LETTER * letters * (spots[-1] - spots[0])

    last = len(ticks) - 1
    kept = [0]
    for at in range(1, last):
        if apart(at, kept[-1]) and apart(at, last):
            kept.append(at)
    return [ticks[at] for at in (*kept, last)]


def _logarithmic(axes: Any, axis: Any, scale: Any) -> None:
    """1, 10, 100, and where they are few also 2 and 5, as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    scale("log")
    low, high = axis.get_view_interval()
    few = high < 1000 * low
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
    axis.set_minor_formatter(NullFormatter())


def _plain(value: float) -> str:
    """
    >>> _plain(100000.0), _plain(2.5), _plain(3000000.0)
    ('100,000', '2.5', '3 M')
    """
    for unit, size in (("G", 1e9), ("M", 1e6)):
        if abs(value) >= size:
            return f"{value / size:,.3g} {unit}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"
