"""Operators whose rows that meet all begin at one instant and never end, as those of a window that is over.

Meaning: what the kernel means, over rows of which those that can meet (agree on its keys) all have the same `ta`, and
    `te` forever.
Emits: what the kernel gives in the step, its ends forever.
Keeps: nothing: whatever comes later has other keys.
Needs: inputs as above, which the planner proves (`planner/sealed.py`).
Costs: those of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from transom.core.delta import Changelog, Delta, forever, no_open_ids
from transom.core.time import FOREVER
from transom.kernels.kernel import Kernel, Step
from transom.state.open_ids import OpenIdPool


@dataclass(frozen=True)
class SealedKernel:
    """The kernel begins anew in every step. Open row ids of its own tell nobody anything: no end ever comes."""

    kernel: Kernel

    def start(self) -> None:
        return None

    def next_timer(self, state: None) -> int:
        return FOREVER

    def step(self, state: None, inputs: Any, step: Step) -> Delta | Changelog:
        out: Delta | Changelog = self.kernel.step(
            self.kernel.start(), inputs, replace(step, open_ids=OpenIdPool(), worker_pool=None)
        )
        if isinstance(out, Changelog):
            return out
        count = len(out)
        return Delta(out.values, out.ta, forever(count), no_open_ids(count), out.frontier)


def sealed(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """The kernels, those that remember something without their memory."""
    return tuple(kernel if kernel.start() is None else SealedKernel(kernel) for kernel in kernels)
