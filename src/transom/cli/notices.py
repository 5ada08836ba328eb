"""What a person reads on standard error about the run itself: where it is, and what takes a while."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from transom.cli.messages import say
from transom.program.first_run import COMPILING, IN_WORKERS, NOTICE


def notice(text: str) -> None:
    say(NOTICE + text)


def say_where(options: argparse.Namespace, *, runs: bool) -> None:
    """Where queries run or, if they are only to be explained, would; and how to have it otherwise."""
    if options.runtime == "local":
        here, there = ("running", "runs") if runs else ("the plan", "shows the one")
        notice(f"{here} in this process; --runtime spark {there} on Spark")
        return
    cores = options.cores or os.cpu_count() or 1
    where = f"{cores} core{'s' * (cores != 1)}"
    if not runs:
        notice(f"the plan on Spark, {where}; --runtime local shows the one in this process")
        return
    notice(f"starting Spark on this machine, {where}; --runtime local runs in this process")
    if not _anything_compiled():
        notice(IN_WORKERS)


@contextmanager
def compiling_announced(announce: Callable[[str], None] = notice) -> Iterator[None]:
    """Within it, it is announced when kernels are compiled in this process.

    Workers of Spark are processes of their own; of them it is known beforehand whether nothing is compiled yet.
    """
    from transom.kernels.jit import when_compiling  # which takes a while to import

    with when_compiling(lambda: announce(COMPILING)):
        yield


def _anything_compiled() -> bool:
    from transom.runtimes.spark.cache import anything_compiled

    return anything_compiled()
