"""Whoever types is told why the first query takes a while: loops are compiled, once an installation.

A command says so itself (`transom.cli.notices`); this is for programs and notebooks, where somebody looks at them.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Final

NOTICE: Final = "transom: "
"""Every notice begins with it, so that nobody takes it for an answer, and it can be left out by whoever reads them."""

COMPILING: Final = "compiling kernels, once on a machine: some seconds"
IN_WORKERS: Final = f"{COMPILING}, in the workers of Spark"


_by_the_command = False


def leave_it_to_the_command() -> None:
    """Say nothing of compiling: this process is a command, which has its own way to."""
    global _by_the_command
    _by_the_command = True


@cache
def announce_compiling() -> None:
    """Say so, once, when the first loop is compiled in this process from now on."""
    from transom.kernels.jit import from_now_on_when_compiling  # which takes a while to import

    from_now_on_when_compiling(lambda: _say(COMPILING))


def announce_workers(*, compiled: bool) -> None:
    """Workers of Spark are processes of their own; of them it is known beforehand whether nothing is compiled yet."""
    if not compiled:
        _say(IN_WORKERS)


def somebody_looks() -> bool:
    """Whether this is a notebook, a prompt, or a program on a terminal."""
    return "ipykernel" in sys.modules or hasattr(sys, "ps1") or (sys.stderr is not None and sys.stderr.isatty())


def _say(text: str) -> None:
    if somebody_looks() and not _by_the_command:
        print(NOTICE + text, file=sys.stderr, flush=True)
