"""What a join of sliding windows has done, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final

MOST_RECENT: Final = 512


@dataclass
class SlideReport:
    """Slides by what became of them, and by how they were made; bytes, of which `peak_bytes` is the most in memory.

    `budget` is that of all joins that are `sharing` it, 0 for none; `held_bytes` are in memory here by now, and
    `peak_together` is the most that all of them had.

    `recent` are the last slides: [instant, rows, microseconds of work, attempts]; `recent_tactics` how they were made.
    Delays are of slides that were put off: microseconds from when they were due until they were complete.
    """

    complete: int = 0
    put_off: int = 0
    completed_later: int = 0
    tactics: dict[str, int] = field(default_factory=dict)
    peak_bytes: int = 0
    budget: int = 0
    sharing: int = 1
    held_bytes: int = 0
    peak_together: int = 0
    bytes_written: int = 0
    bytes_read: int = 0
    delay_total: int = 0
    delay_most: int = 0
    recent: list[list[int]] = field(default_factory=list)
    recent_tactics: list[str] = field(default_factory=list)

    def finish(self, tactic: str, at: int, rows: int, seconds: float, attempt: int, delay: int) -> None:
        """A slide is complete."""
        self.complete += 1
        if attempt > 1:
            self.completed_later += 1
            self.delay_total += delay
            self.delay_most = max(self.delay_most, delay)
        self.tactics[tactic] = self.tactics.get(tactic, 0) + 1
        self.recent = [*self.recent[1 - MOST_RECENT :], [at, rows, int(seconds * 1e6), attempt]]
        self.recent_tactics = [*self.recent_tactics[1 - MOST_RECENT :], tactic]

    def totals(self) -> dict[str, object]:
        """As JSON can hold it, without the single slides."""
        return asdict(replace(self, recent=[], recent_tactics=[]))

    @staticmethod
    def united(parts: Sequence[SlideReport]) -> SlideReport:
        """Of places that each make a part of a slide: a slide counts once for a tactic and place, bytes add up.

        >>> one, other = SlideReport(3, peak_bytes=10), SlideReport(2, peak_bytes=5, tactics={"one-pass full": 2})
        >>> report = SlideReport.united([one, other])
        >>> report.complete, report.peak_bytes, report.tactics
        (3, 15, {'one-pass full': 2})
        """
        report = SlideReport()
        for part in parts:
            for name in ("complete", "put_off", "completed_later", "delay_total", "delay_most"):
                setattr(report, name, max(getattr(report, name), getattr(part, name)))
            report.sharing = max(report.sharing, part.sharing)
            for name in ("peak_bytes", "budget", "held_bytes", "peak_together", "bytes_written", "bytes_read"):
                setattr(report, name, getattr(report, name) + getattr(part, name))
            for tactic, count in part.tactics.items():
                report.tactics[tactic] = report.tactics.get(tactic, 0) + count
        return report

    def lines(self) -> list[str]:
        """As EXPLAIN ANALYZE shows it.

        >>> report = SlideReport(peak_bytes=1000)
        >>> report.finish("one-pass full", 10, 3, 0.001, 2, 2_000_000)
        >>> report.lines()
        ['slides: 1 complete, 0 put off, 1 completed later (on average 2 s late, at most 2 s)', \
'one-pass full: 1 slide', 'at most 1,000 bytes in memory, 0 written to disk, 0 read back']
        """
        late = ""
        if self.completed_later:
            average = self.delay_total / self.completed_later / 1e6
            late = f" (on average {average:.3g} s late, at most {self.delay_most / 1e6:.3g} s)"
        waiting = max(self.put_off - self.completed_later, 0)
        lines = [
            f"slides: {self.complete:,} complete, {waiting:,} put off, {self.completed_later:,} completed later{late}"
        ]
        lines += [f"{tactic}: {count:,} slide{'s' * (count != 1)}" for tactic, count in sorted(self.tactics.items())]
        lines.append(
            f"at most {self.peak_bytes:,} bytes in memory, {self.bytes_written:,} written to disk,"
            f" {self.bytes_read:,} read back"
        )
        if self.budget:
            among = f" for {self.sharing} joins, which had at most {self.peak_together:,}" if self.sharing > 1 else ""
            lines.append(f"{self.held_bytes:,} bytes held of a budget of {self.budget:,}{among}")
        return lines
