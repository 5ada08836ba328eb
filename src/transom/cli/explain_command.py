"""`transom explain`: how the queries of a file would run; with --analyze, how they did."""

from __future__ import annotations

import argparse
import json
import os
from functools import partial

from transom.cli.query_file import folder_of, read_query_file, read_settings
from transom.plan.catalogue import Catalogue
from transom.planner.explain import explain_json, explain_text
from transom.program.planned import read_program
from transom.program.sample import peeked
from transom.program.statistics import in_buckets, sampling, this_machine


def main(options: argparse.Namespace) -> int:
    text = read_query_file(options.file)
    fixed = read_settings(options.set)
    with folder_of(options.file):
        if options.analyze:
            from transom.session import Session  # the engine, which takes a while to import

            with Session(runtime=options.runtime, cores=options.cores) as session:
                print(session.explain(text, json=options.json, analyze=True, fixed=fixed))
            return 0
        where = (
            this_machine if options.runtime == "local" else partial(in_buckets, options.cores or os.cpu_count() or 1)
        )
        planned = [
            one for one in read_program(text, Catalogue(), fixed, sampling(peeked, where)) if one.root is not None
        ]
    if options.json:
        plans = [{"statement": one.statement.text, **explain_json(one.root)} for one in planned if one.root]
        print(json.dumps({"queries": plans}, indent=2))
    else:
        print("\n\n".join(explain_text(one.root) for one in planned if one.root))
    return 0
