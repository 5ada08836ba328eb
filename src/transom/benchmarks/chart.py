"""Charts of benchmarks, for people who would rather look than read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from transom.core.errors import SinkError

Points = Sequence[tuple[float, float]]


def write_chart(path: str, title: str, x: str, y: str, lines: Mapping[str, Points]) -> None:
    """Lines over a logarithmic x axis, as a file of the kind that the name says (.svg, .png, .pdf)."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SinkError(
            "charts need the package matplotlib, which is not installed", remedy="pip install 'transom[plot]'"
        ) from error
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, points in lines.items():
        axes.plot([point[0] for point in points], [point[1] for point in points], marker="o", label=name)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    axes.legend()
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise SinkError(
            f"the chart cannot be written to '{path}': {error}", remedy="name a file such as chart.svg"
        ) from error
