"""What kernels decide by what they measure, kept so that a step can be taken again.

State that was lost is made again by taking the steps since the last snapshot once more. A step depends on nothing but
state and input, with one exception: a kernel may look at a clock, or at what a disk has cost, and choose a way by it.
What it chose stands beside the input of the step then, and the step that is taken again chooses the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Decisions:
    """The decisions of one step, in their order, as JSON can hold them.

    `recorded` are those of a step that is taken again.

    >>> first = Decisions()
    >>> first.make(lambda: "full"), first.made
    ('full', ['full'])
    >>> Decisions(first.made).make(lambda: "incremental")
    'full'
    """

    def __init__(self, recorded: Sequence[Any] = ()) -> None:
        self.made: list[Any] = []
        self._recorded = list(recorded)

    def make(self, decide: Callable[[], Any]) -> Any:
        at = len(self.made)
        self.made.append(self._recorded[at] if at < len(self._recorded) else decide())
        return self.made[-1]
