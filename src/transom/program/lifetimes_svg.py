"""Lifetimes as bars over time, as a picture in HTML: of the same marks as the drawings of the manual."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from transom.core.time import format_instant
from transom.program.live_answer import Bar

_LINES: Final = 16
_LEFT, _WIDTH, _ROW, _TOP = 190, 760, 20, 24


def lifetimes_svg(bars: Sequence[Bar]) -> str:
    """The newest lines; a row that comes again is on the line that it had.

    >>> picture = lifetimes_svg([Bar("<b>", 0, 1_000_000), Bar("open", 500_000, None)])
    >>> picture.count("<circle"), "&lt;b&gt;" in picture, lifetimes_svg([])
    (3, True, '')
    """
    lines: dict[str, list[Bar]] = {}
    for bar in reversed(bars):
        if bar.label in lines or len(lines) < _LINES:
            lines.setdefault(bar.label, []).append(bar)
    instants = [at for line in lines.values() for bar in line for at in (bar.begin, bar.end) if at is not None]
    if not instants:
        return ""
    first, last = min(instants), max(instants)
    height = _TOP + len(lines) * _ROW + 6

    def x(at: int) -> float:
        return _LEFT + (at - first) / max(last - first, 1) * (_WIDTH - _LEFT - 30)

    parts = [
        f'<text x="{x(at):.0f}" y="14" text-anchor="{side}" opacity=".65">{escape(format_instant(at))}</text>'
        for at, side in ((first, "start"), (last, "end"))
        if at == first or last > first
    ]
    for number, (label, line) in enumerate(lines.items()):
        y = _TOP + number * _ROW + _ROW // 2
        text = label if len(label) <= 26 else label[:25] + "…"
        parts.append(f'<text x="{_LEFT - 12}" y="{y + 4}" text-anchor="end">{escape(text)}</text>')
        for bar in line:
            begin = _LEFT - 8.0 if bar.begin is None else x(bar.begin)
            end = _WIDTH - 12.0 if bar.end is None else x(bar.end)
            colour, dash = ("#1f7a4d", ' stroke-dasharray="5 3"') if bar.end is None else ("#0b6e99", "")
            parts.append(
                f'<line x1="{begin:.1f}" x2="{end:.1f}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="3"{dash}/>'
            )
            if bar.begin is not None:
                parts.append(f'<circle cx="{begin:.1f}" cy="{y}" r="4.5" fill="{colour}"/>')
            if bar.end is not None and bar.end != bar.begin:
                parts.append(f'<circle cx="{end:.1f}" cy="{y}" r="4" fill="white" stroke="{colour}" stroke-width="2"/>')
    return (
        f'<svg width="{_WIDTH}" height="{height}" style="font:11px system-ui,sans-serif" fill="currentColor" '
        f'role="img" aria-label="Lifetimes">{"".join(parts)}</svg>'
    )
