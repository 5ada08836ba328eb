"""`transom shell`: statements from the keyboard, or from standard input."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

from transom.cli.notices import compiling_announced, notice, say_where
from transom.cli.query_file import confinement, folder_of, read_query_file
from transom.cli.shell import Manner, Shell
from transom.cli.shell_completion import completions
from transom.cli.shell_text import is_whole, split
from transom.program.first_run import NOTICE
from transom.session import Session, workspace_of


def main(options: argparse.Namespace) -> int:
    live = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    with contextlib.ExitStack() as around:
        session = around.enter_context(
            Session(runtime=options.runtime, cores=options.cores, within=confinement(options.within))
        )
        say_where(options, runs=True)
        workspace_of(session).begin()

        def announce(text: str) -> None:
            if live:
                workspace_of(session).screen.write(f"{NOTICE}{text}\n")
            else:
                notice(text)

        around.enter_context(compiling_announced(announce))
        starting = "starting" if options.runtime == "local" else "starting on Spark"
        shell = Shell(Manner(options.emit, options.format, options.follow, live, starting), session)
        going = True
        if options.file is not None:
            text = read_query_file(options.file)
            around.enter_context(folder_of(options.file))
            going = _execute(shell, text + "\n;")
        try:
            if going:
                (_typed if live else _read)(shell)
        finally:
            shell.stop()
    return 1 if shell.failed and not live else 0


def _typed(shell: Shell) -> None:
    from transom.cli.shell_keyboard import Keyboard

    screen = workspace_of(shell.session).screen
    keyboard = Keyboard(
        screen,
        lambda text: completions(
            text, workspace_of(shell.session).catalogue, [query.number for query in shell.running]
        ),
    )
    screen.write("Statements end with ; and HELP lists the commands.\n")
    while True:
        try:
            text = keyboard.read()
        except KeyboardInterrupt:  # a line that is not wanted after all
            continue
        except EOFError:
            return
        try:
            # A ; more ends what is whole without one: a command.
            if not _execute(shell, text + "\n;"):
                return
        except KeyboardInterrupt:
            continue


def _read(shell: Shell) -> None:
    """Execute each statement as soon as it is whole. At the end of the input, queries go on to the end of theirs."""
    pending = ""
    for line in sys.stdin:
        pending += line
        if is_whole(pending):
            if not _execute(shell, pending + "\n;"):
                return
            pending = "\n" * pending.count("\n")
    _execute(shell, pending + "\n;")
    shell.wait()


def _execute(shell: Shell, text: str) -> bool:
    return all(shell.execute(statement) for statement in split(text)[0])
