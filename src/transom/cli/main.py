"""`transom`: the commands, their options, and what becomes of errors.

Whatever takes long to import is imported by the command that needs it, so that help comes at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from transom import __version__
from transom.cli.messages import drop_unwritten, message_of, prepare_output, say
from transom.cli.query_file import UsageError
from transom.core.emit_modes import EMITS
from transom.core.errors import TransomError
from transom.core.text import visible
from transom.program.first_run import leave_it_to_the_command
from transom.program.interrupt import Terminated, listen

OK, WRONG, USAGE, INTERRUPTED = 0, 1, 2, 130

_PATHS = (
    "Paths in the query file are relative to the folder of the file; those on the command line to the current folder."
)
_EXIT = (
    "Exit codes: 0 it went well, 1 the query or its data is wrong, 2 wrong usage, 130 interrupted, 143 and 129 ended "
    "by SIGTERM and SIGHUP."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and gives its exit code."""
    prepare_output()
    listen()
    leave_it_to_the_command()
    parser = command_parser()
    given = list(sys.argv[1:] if arguments is None else arguments)
    options, rest = parser.parse_known_args(given)
    if rest and options.command != "bench":
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    options.arguments, options.rest = given, rest
    try:
        return _carried_out(options)
    finally:
        drop_unwritten()


def _carried_out(options: argparse.Namespace) -> int:
    try:
        command = import_module(f"transom.cli.{options.command}_command")
        code: int = command.main(options)
        sys.stdout.flush()
        return code
    except TransomError as error:
        say(message_of(error))
        return USAGE if isinstance(error, UsageError) else WRONG
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except Terminated as ended:
        say(str(ended))
        return ended.status
    except BrokenPipeError:  # whoever read our output has seen enough
        return OK
    except Exception as error:
        if os.environ.get("TRANSOM_DEBUG"):
            raise
        say(message_of(error))
        return WRONG


class _ArgumentParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(visible(message))


def command_parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _ArgumentParser(
        prog="transom",
        description="Standing SQL questions over streams, answered as the data arrives.",
        epilog=f"{_PATHS} {_EXIT}",
    )
    parser.add_argument("--version", action="version", version=f"transom {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_run(commands)
    _add_shell(commands)
    _add_console(commands)
    check = commands.add_parser("check", help="say whether a query file is right", epilog=f"{_PATHS} {_EXIT}")
    _add_query_file(check)
    _add_within(check)
    explain = commands.add_parser("explain", help="show how the queries of a file would run", epilog=_PATHS)
    _add_query_file(explain)
    _add_within(explain)
    explain.add_argument("--json", action="store_true", help="as JSON")
    explain.add_argument("--analyze", action="store_true", help="run them, and show what each operator did")
    _add_runtime(explain)
    compiling = commands.add_parser(
        "compile",
        help="compile the loops of the engine now, not when the first query needs them",
        description="Compiles the loops of the engine and keeps them: for the workers of a Spark that Transom starts, "
        "or with --runtime local for queries in this process; NUMBA_CACHE_DIR in the environment is a place for both.",
    )
    _add_runtime(compiling, cores="how many processes compile (default: one for each core)")
    # Its options are those of the benchmark, which knows them itself.
    commands.add_parser("bench", help="list the benchmarks, or run one (in a checkout)", add_help=False)
    demo = commands.add_parser(
        "demo", help="a burning building: a day of readings, and the alarms that follow from them"
    )
    demo.add_argument("--keep", metavar="DIR", help="leave the readings, the query file and the answer in this folder")
    demo.add_argument("--seed", type=int, default=7, help="which day it is (default %(default)s)")
    _add_runtime(demo)
    return parser


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser(
        "run",
        help="run the queries of a file",
        description="Runs the queries of a file together, to the end of their input; with a checkpoint time stays open "
        "there, and the next run goes on. INSERT writes to its sink; rows of other queries are printed. On a terminal "
        "a display says how it is going. What became of every input row is reported at the end, on standard error.",
        epilog=f"{_PATHS} {_EXIT}",
    )
    _add_query_file(run)
    _add_within(run)
    _add_runtime(run)
    run.add_argument("--checkpoint", metavar="DIR", help="resume from the checkpoint in this folder, and renew it")
    run.add_argument(
        "--every",
        metavar="N",
        type=_count,
        help="steps between two checkpoints (default 16); on Spark every batch is one, and N means nothing",
    )
    run.add_argument(
        "--dead-letters", metavar="DIR", help="write rejected rows and their reasons to this folder, a folder a query"
    )
    how = run.add_mutually_exclusive_group()
    how.add_argument("--follow", action="store_true", help="wait for more input, until Ctrl-C")
    how.add_argument(
        "--once",
        dest="end",
        action="store_const",
        const=False,
        help="read all there is now, and leave time open: the next run goes on (what a run with --checkpoint does)",
    )
    how.add_argument(
        "--end",
        action="store_true",
        default=None,
        help="the input ends here: what waits for more is emitted, and no later run may bring any (what a run without "
        "--checkpoint does)",
    )
    run.add_argument(
        "--console",
        metavar="HOST:PORT",
        nargs="?",
        const="",
        help="show the run in a browser, on this machine alone unless an address says otherwise (default "
        "127.0.0.1:4040; write it behind FILE.cql)",
    )
    run.add_argument("--plain", action="store_true", help="no display, on a terminal either")
    _add_display_options(run)
    _add_watching(run)


def _add_watching(run: argparse.ArgumentParser) -> None:
    """How the run can be looked at from outside."""
    run.add_argument(
        "--metrics",
        metavar="HOST:PORT",
        nargs="?",
        const="127.0.0.1:9464",
        help="serve figures for Prometheus at /metrics and as JSON at /status (default %(const)s; port 0: a free one)",
    )
    run.add_argument(
        "--flight",
        metavar="HOST:PORT",
        nargs="?",
        const="127.0.0.1:9465",
        help="serve the answers as they are and were (SET history) by SQL over Arrow Flight (default %(const)s)",
    )
    run.add_argument("--status", metavar="FILE", help="keep a file with the status as JSON, renewed every second")
    run.add_argument(
        "--log", choices=["text", "json"], help="a line a batch, and warnings; on standard error, in place of a display"
    )
    run.add_argument("--log-file", metavar="FILE", help="where these lines go; it is appended to")


def _add_shell(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    shell = commands.add_parser(
        "shell",
        help="type statements, and see their answers",
        description="Statements are typed or pasted, each with a ; at its end, or come from standard input. HELP says "
        "what else can be written.",
        epilog=f"{_PATHS} {_EXIT}",
    )
    shell.add_argument(
        "file", metavar="FILE.cql", nargs="?", help="statements to begin with; paths begin at its folder then"
    )
    _add_within(shell)
    shell.add_argument("--follow", action="store_true", help="queries wait for more input, until they are stopped")
    _add_runtime(shell)
    _add_display_options(shell)


def _add_console(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    console = commands.add_parser(
        "console",
        help="look at queries in a browser, and edit them",
        description="Serves a page for a browser on this machine. The queries of FILE.cql run and wait for more input, "
        "until Ctrl-C; of a CHECKPOINT what it tells is shown, and nothing runs.",
        epilog=f"{_PATHS} {_EXIT}",
    )
    console.add_argument(
        "file", metavar="FILE.cql|CHECKPOINT", nargs="?", help="queries to begin with, or the folder of a checkpoint"
    )
    _add_within(console)
    _add_runtime(console)
    console.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default=None,
        help="where the page is served (default 127.0.0.1:4040; port 0 takes one that is free)",
    )
    console.add_argument(
        "--allow-changes",
        action="store_true",
        help="whoever opens the address that is printed may declare inputs, and start and stop queries",
    )


def _add_runtime(parser: argparse.ArgumentParser, cores: str = "how many cores Spark may use (default: all)") -> None:
    parser.add_argument(
        "--runtime",
        metavar="{spark,local}",
        type=_runtime,
        default=os.environ.get("TRANSOM_RUNTIME", "spark"),
        help="where queries run: on Spark, which is started on this machine, or in this process; TRANSOM_RUNTIME in "
        "the environment says it for all commands (default %(default)s)",
    )
    parser.add_argument("--cores", metavar="N", type=_count, help=cores)


def _add_display_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--emit",
        choices=EMITS,
        default="changes",
        help="how the answers that are printed look",
    )
    parser.add_argument(
        "--format",
        choices=["table", "csv", "jsonl"],
        help="how rows are printed (default: a table on a terminal, otherwise CSV)",
    )


def _add_query_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.cql", help="the query file; - is standard input")
    parser.add_argument(
        "--set", metavar="OPTION=VALUE", action="append", default=[], help="as SET in the file, with the last word"
    )


def _add_within(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--within",
        metavar="DIR",
        help="reject every file and folder that is not in this one, links resolved; without it a query file may read "
        "and overwrite whatever you may",
    )


def _runtime(text: str) -> str:
    """Also of what the environment says."""
    if text not in ("spark", "local"):
        raise argparse.ArgumentTypeError(f"there is no runtime '{text}'; write spark or local")
    return text


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number above 0 is expected, not '{text}'")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
