"""Figures for newcomers, drawn by lines of SVG: what a stream, a window and a lifetime are, and how a query runs.

The first three show one query over two rows, and the answer in them is that of a real run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from tests.docs.pages import DOCS
from transom.testing import run_query

FIGURES: Final = DOCS / "figures"

INK, GREY, PALE = "#222222", "#7f7f7f", "#eef3f8"
BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
"""The colours of the charts (`benchmarks/chart.py`); what differs in colour differs in shape as well."""

_FONT: Final = "font-family='DejaVu Sans, Verdana, sans-serif'"


@dataclass
class Drawing:
    width: int
    height: int
    title: str
    _lines: list[str] = field(default_factory=list)

    def text(
        self,
        x: float,
        y: float,
        said: str,
        *,
        size: int = 14,
        colour: str = INK,
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        weight = " font-weight='bold'" if bold else ""
        style = f"font-size='{size}' fill='{colour}' text-anchor='{anchor}'{weight} {_FONT}"
        self._lines.append(f"<text x='{x:g}' y='{y:g}' {style}>{escape(said)}</text>")

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, colour: str = INK, width: float = 1.5, dashes: str = ""
    ) -> None:
        dashed = f" stroke-dasharray='{dashes}'" if dashes else ""
        self._lines.append(
            f"<line x1='{x1:g}' y1='{y1:g}' x2='{x2:g}' y2='{y2:g}' stroke='{colour}' "
            f"stroke-width='{width:g}'{dashed}/>"
        )

    def arrow(self, x1: float, y1: float, x2: float, y2: float, *, colour: str = INK, dashes: str = "") -> None:
        dashed = f" stroke-dasharray='{dashes}'" if dashes else ""
        self._lines.append(
            f"<line x1='{x1:g}' y1='{y1:g}' x2='{x2:g}' y2='{y2:g}' stroke='{colour}' stroke-width='1.5'{dashed} "
            "marker-end='url(#arrow)'/>"
        )

    def point(self, x: float, y: float, colour: str, *, hollow: bool = False) -> None:
        inside = "white" if hollow else colour
        self._lines.append(f"<circle cx='{x:g}' cy='{y:g}' r='5' fill='{inside}' stroke='{colour}' stroke-width='2'/>")

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        said: Sequence[str] = (),
        *,
        colour: str = BLUE,
        fill: str = "white",
    ) -> None:
        """Its first line in bold, all of them in its middle."""
        self._lines.append(
            f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' rx='6' fill='{fill}' stroke='{colour}' "
            "stroke-width='1.5'/>"
        )
        for at, line in enumerate(said):
            below = y + height / 2 + 5 + 17 * (at - (len(said) - 1) / 2)
            self.text(x + width / 2, below, line, size=14 if at == 0 else 12, anchor="middle", bold=at == 0)

    def svg(self) -> str:
        return "\n".join(
            (
                f"<svg xmlns='http://www.w3.org/2000/svg' width='{self.width}' height='{self.height}' "
                f"viewBox='0 0 {self.width} {self.height}' role='img'>",
                f"<title>{escape(self.title)}</title>",
                "<defs><marker id='arrow' viewBox='0 0 10 10' refX='9' refY='5' markerWidth='7' markerHeight='7' "
                f"orient='auto-start-reverse'><path d='M 0 0 L 10 5 L 0 10 z' fill='{INK}'/></marker></defs>",
                f"<rect width='{self.width}' height='{self.height}' fill='white'/>",
                *self._lines,
                "</svg>",
                "",
            )
        )


# --- stream, window, lifetime ----------------------------------------------------------------------------------------

ROWS: Final = ((0, "A 10"), (4, "A 20"))
MINUTES: Final = 16
QUERY: Final = """
CREATE STREAM trades (ts TIMESTAMP, symbol VARCHAR, price DOUBLE, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
SELECT symbol, AVG(price) AS average FROM trades [RANGE 10 MINUTES] GROUP BY symbol;
"""


def _x(minute: float) -> float:
    return 150 + minute * 36


def _strip(title: str, height: int) -> Drawing:
    """A drawing over the minutes from 09:00 on, with its axis below."""
    drawing = Drawing(760, height, title)
    foot = height - 34
    drawing.arrow(_x(-0.5), foot, _x(MINUTES) + 6, foot)
    for minute in range(0, MINUTES, 2):
        drawing.line(_x(minute), foot - 4, _x(minute), foot + 4)
        drawing.text(_x(minute), foot + 20, f"09:{minute:02}", size=12, colour=GREY, anchor="middle")
    return drawing


def _alive(drawing: Drawing, y: float, begin: float, end: float, said: str, colour: str) -> None:
    drawing.line(_x(begin), y, _x(end), y, colour=colour, width=4)
    drawing.point(_x(begin), y, colour)
    drawing.point(_x(end), y, colour, hollow=True)
    drawing.text(_x((begin + end) / 2), y - 9, said, size=13, anchor="middle", colour=colour, bold=True)


def stream() -> Drawing:
    drawing = _strip("A stream is rows, each with an instant", 120)
    drawing.text(14, 56, "trades", bold=True)
    for minute, row in ROWS:
        drawing.point(_x(minute), 51, BLUE)
        drawing.text(_x(minute), 34, row, size=13, anchor="middle", colour=BLUE, bold=True)
    return drawing


def window() -> Drawing:
    drawing = _strip("A window keeps each row alive for ten minutes", 190)
    drawing.text(14, 40, "trades", bold=True)
    drawing.text(14, 60, "[RANGE", size=12, colour=GREY)
    drawing.text(14, 76, "10 MINUTES]", size=12, colour=GREY)
    for at, (minute, row) in enumerate(ROWS):
        _alive(drawing, 51 + 52 * at, minute, minute + 10, row, BLUE)
    drawing.line(_x(7), 14, _x(7), 156, colour=ORANGE, dashes="4 4")
    drawing.text(_x(7) + 8, 140, "at 09:07 both are alive: the snapshot is A 10, A 20", size=12, colour=ORANGE)
    return drawing


def lifetime() -> Drawing:
    """What the engine answers: the averages and from when to when they hold."""
    answer = run_query(QUERY, {"trades": "\n".join(f"09:{minute:02} {row}" for minute, row in ROWS)})
    changes = [line.split() for line in str(answer).splitlines() if line]
    drawing = _strip("The answer is rows with lifetimes as well", 232)
    drawing.text(14, 40, "AVG(price)", bold=True)
    drawing.text(14, 60, "GROUP BY symbol", size=12, colour=GREY)
    begun: dict[str, float] = {}
    row = 0
    for at, change, *values in changes:
        said, minute = f"{values[0]} {float(values[1]):g}", int(at.split(":")[1])
        if change == "+":
            begun[said] = minute
        else:
            _alive(drawing, 45 + 52 * row, begun.pop(said), minute, said, GREEN)
            row += 1
    assert row == 3 and not begun, f"the answer is another one: {answer}"
    return drawing


# --- how a query runs ------------------------------------------------------------------------------------------------


def plan_on_spark() -> Drawing:
    drawing = Drawing(860, 400, "A plan on Spark")
    for x, said in ((95, "sources"), (300, "tasks that read"), (535, "stateful tasks, one a partition"), (772, "sink")):
        drawing.text(x, 26, said, anchor="middle", colour=GREY, size=13)
    for at, source in enumerate((("Kafka", "a partition"), ("files", "a split"), ("DataFrame", "of readStream"))):
        drawing.box(20, 52 + 88 * at, 150, 60, source, colour=GREY, fill=PALE)
        drawing.box(225, 52 + 88 * at, 150, 60, ("judge, pack", "watermark, late rows"))
        drawing.arrow(172, 82 + 88 * at, 222, 82 + 88 * at)
    for at in range(3):
        drawing.box(445, 52 + 88 * at, 180, 60, ("window, join, group", "state: a log in RocksDB"), colour=GREEN)
        drawing.arrow(627, 82 + 88 * at, 687, 170 + 2 * (at - 1))
        for other in range(3):
            drawing.arrow(377, 82 + 88 * at, 442, 82 + 88 * other + 6 * (at - 1), colour=GREY)
    drawing.text(410, 42, "by key", size=12, colour=GREY, anchor="middle")
    drawing.box(690, 140, 164, 60, ("an epoch", "staged, then committed"), colour=ORANGE)
    drawing.box(225, 330, 400, 48, ("driver: the batch, its offsets, the checkpoint",), colour=PURPLE, fill=PALE)
    drawing.arrow(300, 328, 300, 292, dashes="5 4")
    drawing.arrow(535, 328, 535, 292, dashes="5 4")
    drawing.line(625, 354, 772, 354, dashes="5 4")
    drawing.arrow(772, 354, 772, 203, dashes="5 4")
    drawing.text(762, 345, "commits, once", size=12, colour=GREY, anchor="end")
    return drawing


def dataflow() -> Drawing:
    drawing = Drawing(860, 330, "From the text to the answer")
    stages = (
        (("text", "SQL with windows"), GREY),
        (("cql", "names and types"), BLUE),
        (("rewrites", "filters down"), BLUE),
        (("planner", "a tactic each, why"), BLUE),
        (("pipeline", "kernels and state"), GREEN),
    )
    for at, (said, colour) in enumerate(stages):
        drawing.box(14 + 170 * at, 20, 148, 58, said, colour=colour, fill=PALE if colour == GREY else "white")
        if at:
            drawing.arrow(164 + 170 * (at - 1), 49, 181 + 170 * (at - 1), 49)
    drawing.line(768, 80, 768, 106, dashes="5 4", colour=GREY)
    drawing.line(14, 106, 846, 106, dashes="5 4", colour=GREY)
    drawing.text(
        14, 128, "one step of the pipeline, in one process or in each partition on Spark", size=13, colour=GREY
    )
    flow = (
        (("source", "a batch"), GREY, ""),
        (("input gate", "late? rejected?"), BLUE, "rows"),
        (("window", "gives ends"), GREEN, "stream"),
        (("join, group", "keeps what is alive"), GREEN, "delta"),
        (("output", "changes, lifetimes"), ORANGE, "delta"),
    )
    for at, (said, colour, moved) in enumerate(flow):
        drawing.box(14 + 176 * at, 160, 126, 58, said, colour=colour, fill=PALE if colour == GREY else "white")
        if at:
            drawing.arrow(142 + 176 * (at - 1), 189, 187 + 176 * (at - 1), 189)
            drawing.text(163 + 176 * (at - 1), 180, moved, size=11, colour=GREY, anchor="middle")
    drawing.box(
        362,
        258,
        310,
        50,
        ("state: arrays, one codec", "into the checkpoint, with offsets and epochs"),
        colour=PURPLE,
        fill=PALE,
    )
    drawing.arrow(430, 256, 430, 221)
    drawing.arrow(604, 256, 604, 221)
    drawing.text(14, 262, "a delta: rows that began, ends that", size=12, colour=GREY)
    drawing.text(14, 280, "became known, and the frontier, the instant", size=12, colour=GREY)
    drawing.text(14, 298, "before which all of it is final", size=12, colour=GREY)
    return drawing


DRAWINGS: Final[dict[str, Callable[[], Drawing]]] = {
    "stream": stream,
    "window": window,
    "lifetime": lifetime,
    "plan_on_spark": plan_on_spark,
    "dataflow": dataflow,
}


def write() -> None:
    for name, draw in DRAWINGS.items():
        (FIGURES / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")
