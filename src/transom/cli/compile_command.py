"""`transom compile`: compiles the loops of the engine before the first query needs them, on all cores."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from transom.cli.notices import notice


def main(options: argparse.Namespace) -> int:
    if options.runtime == "spark":
        from transom.runtimes.spark.cache import kernels_folder  # which looks for a place at once

        os.environ["NUMBA_CACHE_DIR"] = str(kernels_folder())  # Numba reads it when it is imported, in the processes
    processes = options.cores or os.cpu_count() or 1
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        _compile(pool, pool.submit(_modules).result(), f"{processes} process{'es' * (processes != 1)}")
    return 0


def _compile(pool: ProcessPoolExecutor, loops: Sequence[tuple[str, int]], where: str) -> None:
    every = sum(count for _, count in loops)
    notice(f"compiling {every} loops in {where}, once on a machine: a minute or two")
    done = reported = 0
    for (_, count), _ in zip(loops, pool.map(_compile_module, [module for module, _ in loops]), strict=True):
        done += count
        if done - reported >= every // 5 or done == every:
            reported = done
            notice(f"{done} of {every} loops are compiled")


def _modules() -> list[tuple[str, int]]:
    """The modules that have loops and how many, those first that have most to compile."""
    from transom.kernels.compiling import known_loops  # which imports Numba

    loops = known_loops()
    longest_first = sorted(loops, key=lambda module: -len(str(loops[module])))
    return [(module, sum(map(len, loops[module].values()))) for module in longest_first]


def _compile_module(module: str) -> None:
    from transom.kernels.compiling import compile_module

    compile_module(module)
