"""Charts of benchmarks, for people who would rather look than read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transom.core.errors import SinkError

Points = Sequence[tuple[float, float]]


def write_chart(path: str, title: str, x: str, y: str, lines: Mapping[str, Points]) -> None:
    """Lines over a logarithmic x axis, as a file of the kind that the name says (.svg, .png, .pdf)."""
    figure, axes = _figure(title, y)
    for name, points in lines.items():
        axes.plot([point[0] for point in points], [point[1] for point in points], marker="o", label=name)
    axes.set_xscale("log")
    axes.set_xlabel(x)
    _save(figure, axes, path)


def write_panels(
    path: str,
    title: str,
    x: str,
    y: str,
    panels: Mapping[str, Mapping[str, Points]],
    logarithmic: bool = False,
    ticks_at_points: bool = False,
) -> None:
    """Charts like `write_chart` side by side, four in a row. A line looks the same wherever its name stands.

    `logarithmic` is for the y axis; the x axis always is. `ticks_at_points` has ticks where the points are, for few.
    """
    figure = _empty_figure((16, 4.2 * -(-len(panels) // 4)))
    figure.suptitle(title)
    grid = figure.subplots(-(-len(panels) // 4), 4, squeeze=False).flatten()
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    drawn: dict[str, Any] = {}
    for axes, (head, lines) in zip(grid, panels.items(), strict=False):
        for name, points in lines.items():
            at = names.index(name)
            look = {"color": f"C{at // 2}", "linestyle": ("-", "--")[at % 2], "marker": ("o", "x")[at % 2]}
            (drawn[name],) = axes.plot([point[0] for point in points], [point[1] for point in points], **look)
        axes.set_title(head)
        axes.set_xscale("log")
        if ticks_at_points:
            places = sorted({point[0] for points in lines.values() for point in points})
            axes.set_xticks(places, [f"{place:g}" for place in places])
            axes.set_xticks([], minor=True)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if logarithmic:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    figure.legend(drawn.values(), drawn.keys(), loc="outside lower center", ncols=len(names))
    _write(figure, path)


@dataclass(frozen=True)
class Panel:
    """Lines, given as their x and y values, over plain axes or logarithmic ones; `shaded` are spans of x."""

    title: str
    x: str
    y: str
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    shaded: Sequence[tuple[float, float]] = ()
    logarithmic: bool = False


def write_grid(path: str, title: str, panels: Sequence[Panel]) -> None:
    """Panels of their own kinds side by side, three in a row, each with its legend."""
    figure = _empty_figure((15, 3.4 * -(-len(panels) // 3)))
    figure.suptitle(title)
    grid = figure.subplots(-(-len(panels) // 3), 3, squeeze=False).flatten()
    for axes, panel in zip(grid, panels, strict=False):
        for at, (name, (xs, ys)) in enumerate(panel.lines.items()):
            paired = len(panel.lines) > 3
            look = {"color": f"C{at // 2}", "linestyle": ("-", "--")[at % 2]} if paired else {"color": f"C{at}"}
            axes.plot(xs, ys, label=name, marker="." if panel.logarithmic else "", **look)
        for begin, end in panel.shaded:
            axes.axvspan(begin, end, color="0.85", linewidth=0)
        axes.set_title(panel.title, fontsize=10)
        if panel.logarithmic:
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.minorticks_off()
        else:
            axes.set_ylim(bottom=0)
        if max((len(xs) for xs, _ in panel.lines.values()), default=0) < 10:  # stages and the like: name each
            ticks = next(iter(panel.lines.values()))[0]
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xlabel(panel.x)
        axes.set_ylabel(panel.y)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    _write(figure, path)


def write_bars(
    path: str, title: str, y: str, groups: Sequence[str], bars: Mapping[str, Sequence[float | None]]
) -> None:
    """Bars side by side in named groups, each with its number on top; None leaves a gap."""
    figure, axes = _figure(title, y)
    width = 0.8 / max(1, len(bars))
    for place, (name, heights) in enumerate(bars.items()):
        shown = [(group, height) for group, height in enumerate(heights) if height is not None]
        middles = [group + (place - (len(bars) - 1) / 2) * width for group, _ in shown]
        drawn = axes.bar(middles, [height for _, height in shown], width, label=name)
        axes.bar_label(drawn, fmt="%.3g", fontsize=8)
    axes.set_xticks(range(len(groups)), groups)
    _save(figure, axes, path)


def _figure(title: str, y: str) -> tuple[Any, Any]:
    figure = _empty_figure((7, 4.5))
    axes = figure.subplots()
    axes.set_title(title)
    axes.set_ylabel(y)
    return figure, axes


def _empty_figure(size: tuple[float, float]) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SinkError(
            "charts need the package matplotlib, which is not installed", remedy="pip install 'transom[plot]'"
        ) from error
    return Figure(figsize=size, layout="constrained")


def _save(figure: Any, axes: Any, path: str) -> None:
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    _write(figure, path)


def _write(figure: Any, path: str) -> None:
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise SinkError(
            f"the chart cannot be written to '{path}': {error}", remedy="name a file such as chart.svg"
        ) from error
