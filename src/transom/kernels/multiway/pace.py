"""Whether tasks are done sooner by several threads at once, or one after the other by whoever has them.

One after the other has its merits: tuples that found nothing on one input need not be looked for on the next, and
nobody has to be woken, the price of which is measured. What is decided here changes who does something, and never what
comes of it: it may depend on the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transom.kernels.worker_pool import WorkerPool, measured_handover

TAUGHT = 1 << 8
"""From so many entries on the time of a probe is that of its loops, not of the calls around them."""


@dataclass
class ProbePace:
    """What probes of one input were like lately: entries a tuple, nanoseconds an entry, and how many found any."""

    entries: float = 2.0
    nanoseconds: float = 20.0
    finding: float = 1.0

    def note(self, tuples: int, found: int, entries: int, nanoseconds: int) -> None:
        """So many tuples were looked for, and some found; the entries count all of them as well."""
        if tuples:
            self.entries += (entries / tuples - self.entries) / 4
            self.finding += (found / tuples - self.finding) / 4
        if entries >= TAUGHT:
            seen = min(nanoseconds / entries, 2 * self.nanoseconds)  # the clock ran on while others had the processor
            self.nanoseconds += (seen - self.nanoseconds) / 4


class Paces:
    """The paces of probes, by the input of the rows and the one that is probed; and what waking others came to lately.

    `extra` are the nanoseconds that it took beyond the measured price, on a machine where others want the processors,
    too. It is forgotten bit by bit, so that it is tried again.
    """

    def __init__(self) -> None:
        self._paces: dict[tuple[int, int], ProbePace] = {}
        self.extra = 0.0

    def of(self, i: int, target: int) -> ProbePace:
        return self._paces.setdefault((i, target), ProbePace())

    def at_once(self, worker_pool: WorkerPool, paces: Sequence[ProbePace], tuples: int) -> bool:
        """As `sooner`."""
        found = sooner(worker_pool, paces, tuples, self.extra)
        if not found:
            self.extra *= 0.99
        return found

    def waited(self, worker_pool: WorkerPool, tasks: Sequence[int], nanoseconds: int) -> None:
        """Tasks that took these nanoseconds of their threads were done after so many by the clock."""
        best = max(max(tasks), sum(tasks) / min(len(tasks), worker_pool.workers + 1))
        self.extra += (max(0.0, nanoseconds - best - 1000 * measured_handover()) - self.extra) / 4


def sooner(worker_pool: WorkerPool, paces: Sequence[ProbePace], tuples: int, extra: float = 0.0) -> bool:
    """Whether it is best to probe all these inputs at once, or else the first one alone, and then to ask again.

    What counts is the time to an answer: of the tuples at least one is found on every input. Where none is, nobody
    waits for anything, so that a row by itself is not expected to fail however often others did.
    """
    if len(paces) < 2:
        return False
    price = 1000 * measured_handover() + extra
    alive = [float(tuples)]
    for pace in paces[:-1]:
        alive.append(max(1.0, alive[-1] * pace.finding))
    rest = longest = total = 0.0
    at_once = False
    for count, (pace, left) in enumerate(zip(reversed(paces), reversed(alive), strict=True), 1):
        work = pace.entries * pace.nanoseconds
        total += work
        longest = max(longest, work)
        together = price + left * max(longest, total / min(count, worker_pool.workers + 1))
        in_turn = left * work + rest
        at_once = together < in_turn
        rest = min(together, in_turn)
    return at_once
