"""`transom bench`: the benchmarks, which live beside the package in a checkout of it and are not installed."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from transom.cli.query_file import UsageError

CHECKOUT = Path(__file__).resolve().parents[3]


def main(options: argparse.Namespace) -> int:
    if not (CHECKOUT / "benchmarks" / "harness.py").is_file():
        raise UsageError(
            "benchmarks live in a checkout of Transom and are no part of the installed package: clone the repository, "
            "and run `make bench` there"
        )
    if str(CHECKOUT) not in sys.path:
        sys.path.insert(0, str(CHECKOUT))
    code: int = import_module("benchmarks.harness").main(options.rest)
    return code
