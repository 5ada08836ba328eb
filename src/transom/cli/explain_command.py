"""`transom explain`: how the queries of a file would run; with --analyze, how they did."""

from __future__ import annotations

import argparse
import json
import os
from functools import partial

from transom.cli.notices import compiling_announced, say_where
from transom.cli.query_file import confinement, folder_of, read_query_file, read_settings
from transom.plan.catalogue import Catalogue
from transom.program.explained import explained_all
from transom.program.planned import read_program
from transom.program.sample import peeked
from transom.program.statistics import in_partitions, sampling, this_machine


def main(options: argparse.Namespace) -> int:
    text = read_query_file(options.file)
    fixed, within = read_settings(options.set), confinement(options.within)
    with folder_of(options.file):
        if options.analyze:
            from transom.session import Session  # the engine, which takes a while to import

            say_where(options, runs=True)
            with compiling_announced(), Session(runtime=options.runtime, cores=options.cores, within=within) as session:
                print(session.explain(text, json=options.json, analyze=True, fixed=fixed))
            return 0
        where = (
            this_machine if options.runtime == "local" else partial(in_partitions, options.cores or os.cpu_count() or 1)
        )
        catalogue, peek = Catalogue(within=within), partial(peeked, within=within)
        planned = [
            query for query in read_program(text, catalogue, fixed, sampling(peek, where)) if query.root is not None
        ]
    say_where(options, runs=False)
    explained = explained_all(planned, None, where)
    print(json.dumps({"queries": list(explained.plans)}, indent=2) if options.json else explained)
    return 0
