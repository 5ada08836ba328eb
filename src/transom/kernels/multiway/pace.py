"""Whether tasks are done sooner by several threads at once, or one after the other by whoever has them.

One after the other has its merits: tuples that found nothing on one input need not be looked for on the next, and
nobody has to be woken, the price of which is measured. What is decided here changes who does something, and never what
comes of it: it may depend on the clock.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from transom.core.delta import Int64s
from transom.kernels.jit import jit
from transom.kernels.worker_pool import WorkerPool, measured_handover

ENTRIES, NANOSECONDS, FINDING = range(3)
"""What probes of one input were like lately: entries a tuple, nanoseconds an entry, and how many found any."""

UNSEEN: Final = (2.0, 20.0, 1.0)

TAUGHT: Final = 1 << 8
"""From so many entries on the time of a probe is that of its loops, not of the calls around them."""


class Paces:
    """The paces of probes, by the input of the rows and the one that is probed; and what waking others came to lately.

    `extra` are the nanoseconds that it took beyond the measured price, on a machine where others want the processors,
    too. It is forgotten bit by bit, so that it is tried again.
    """

    def __init__(self, inputs: int) -> None:
        self.probes: npt.NDArray[np.float64] = np.full((inputs, inputs, 3), UNSEEN)
        self.extra = np.zeros(1)

    def tasks_sooner(self, i: int, targets: Int64s, tuples: int, worker_pool: WorkerPool) -> bool:
        """Whether tasks of a worker pool that probe these inputs are."""
        price = 1000 * measured_handover() + self.extra[0]
        at_once = bool(sooner(self.probes[i], targets, tuples, worker_pool.workers, price))
        if not at_once:
            self.extra *= 0.99
        return at_once

    def waited_for_tasks(self, tasks: Int64s, worker_pool: WorkerPool, nanoseconds: int) -> None:
        """As `waited`."""
        waited(self.extra, tasks, worker_pool.workers, 1000 * measured_handover(), nanoseconds)


@jit
def note_probe(pace, tuples, matched, entries, nanoseconds):  # type: ignore[no-untyped-def]
    """So many tuples were looked for, and some found; the entries count all of them as well."""
    if tuples:
        pace[ENTRIES] += (entries / tuples - pace[ENTRIES]) / 4
        pace[FINDING] += (matched / tuples - pace[FINDING]) / 4
    if entries >= TAUGHT:
        seen = min(nanoseconds / entries, 2 * pace[NANOSECONDS])  # the clock ran on while others had the processor
        pace[NANOSECONDS] += (seen - pace[NANOSECONDS]) / 4


@jit
def waited(extra, tasks, workers, price, nanoseconds):  # type: ignore[no-untyped-def]
    """Tasks that took these nanoseconds of their threads were done after so many by the clock."""
    best = max(tasks.max(), tasks.sum() / min(len(tasks), workers + 1))
    extra[0] += (max(0.0, nanoseconds - best - price) - extra[0]) / 4


@jit
def sooner(paces, targets, tuples, workers, price):  # type: ignore[no-untyped-def]
    """Whether it is best to probe all these inputs at once, or else the first one alone, and then to ask again.

    What counts is the time to an answer: of the tuples at least one is found on every input. Where none is, nobody
    waits for anything, so that a row by itself is not expected to fail however often others did.
    """
    count = len(targets)
    if count < 2:
        return False
    alive = np.empty(count)
    alive[0] = tuples
    for n in range(1, count):
        alive[n] = max(1.0, alive[n - 1] * paces[targets[n - 1], FINDING])
    rest = 0.0
    longest = 0.0
    total = 0.0
    at_once = False
    for n in range(count - 1, -1, -1):
        work = paces[targets[n], ENTRIES] * paces[targets[n], NANOSECONDS]
        total += work
        longest = max(longest, work)
        together = price + alive[n] * max(longest, total / min(count - n, workers + 1))
        in_turn = alive[n] * work + rest
        at_once = together < in_turn
        rest = min(together, in_turn)
    return at_once
