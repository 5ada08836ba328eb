"""`transom console`: a page over the queries of a file, over a session without any, or over a checkpoint."""

from __future__ import annotations

import argparse
import contextlib
import os

from transom.cli.notices import compiling_announced, notice
from transom.cli.query_file import absolute, confinement, folder_of, read_query_file
from transom.console.open import board_console, session_console
from transom.program.query import Query
from transom.session import Session, workspace_of


def main(options: argparse.Namespace) -> int:
    given = options.file
    if given is not None and (os.path.isdir(given) or "://" in given):
        from transom.console.finished import CheckpointBoard

        with board_console(CheckpointBoard(absolute(given) or given), options.listen or "") as console:
            notice(f"console at {console.url} over the checkpoint '{given}'; Ctrl-C ends it")
            console.wait()
        return 0
    with contextlib.ExitStack() as around:
        session = around.enter_context(
            Session(runtime=options.runtime, cores=options.cores, within=confinement(options.within))
        )
        console = session_console(session, workspace_of(session), options.listen or "", options.allow_changes)
        around.callback(console.close)
        notice(f"console at {console.url}; Ctrl-C ends it and the queries")
        if not options.allow_changes:
            notice("it looks, and changes nothing; with --allow-changes queries can be started and stopped")
        workspace_of(session).begin()
        around.enter_context(compiling_announced())
        if given is not None:
            text = read_query_file(given)
            around.enter_context(folder_of(given))
            for planned in workspace_of(session).prepare(text):
                if planned.standing:
                    Query(planned, "changes", session).start(follow=True)
        console.wait()
    return 0
