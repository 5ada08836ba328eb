"""`transom bench`: the list of benchmarks, or one of them."""

from __future__ import annotations

import argparse
import difflib
import json
from importlib import import_module

from transom.cli.benchmarks import BENCHMARKS
from transom.cli.query_file import UsageError


def main(options: argparse.Namespace) -> int:
    if options.name is None:
        if options.json:
            print(json.dumps({"benchmarks": {name: purpose for name, (_, purpose) in BENCHMARKS.items()}}, indent=2))
        else:
            width = max(len(name) for name in BENCHMARKS)
            for name, (_, purpose) in BENCHMARKS.items():
                print(f"{name:{width}}  {purpose}")
        return 0
    if options.name not in BENCHMARKS:
        close = difflib.get_close_matches(options.name, BENCHMARKS, n=1) or sorted(BENCHMARKS)
        raise UsageError(f"there is no benchmark '{options.name}'", remedy=f"there is {', '.join(close)}")
    code: int = import_module(BENCHMARKS[options.name][0]).main(options)
    return code
