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
    "Exit codes: 0 success, 1 error in the query or its data, 2 wrong usage, 130 interrupted, 143 and 129 ended "
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
        description="Standing SQL queries over streams, on Spark or in one process.",
        epilog=f"{_PATHS} {_EXIT}",
    )
    parser.add_argument("--version", action="version", version=f"transom {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_run(commands)
    _add_shell(commands)
    _add_console(commands)
    check = commands.add_parser("check", help="validate a query file without running it", epilog=f"{_PATHS} {_EXIT}")
    _add_query_file(check)
    _add_within(check)
    explain = commands.add_parser("explain", help="show the plans of the queries in a file", epilog=_PATHS)
    _add_query_file(explain)
    _add_within(explain)
    explain.add_argument("--json", action="store_true", help="print JSON")
    explain.add_argument("--analyze", action="store_true", help="run the queries, and show what each operator did")
    _add_runtime(explain)
    compiling = commands.add_parser(
        "compile",
        help="compile the engine's kernels ahead of time, once per installation",
        description="Compiles the engine's kernels and caches them: for the workers of a Spark that Transom starts, or "
        "with --runtime local for queries in one process. Set NUMBA_CACHE_DIR in the environment to have one cache "
        "for both.",
    )
    _add_runtime(compiling, cores="number of compiling processes (default: one per core)")
    # Its options are those of the benchmark, which knows them itself.
    commands.add_parser("bench", help="list the benchmarks, or run one (in a checkout)", add_help=False)
    demo = commands.add_parser("demo", help="run an example: a day of readings in a building, and its fire alarms")
    demo.add_argument("--keep", metavar="DIR", help="keep the readings, the query file and the answer in this folder")
    demo.add_argument("--seed", type=int, default=7, help="seed of the generated day (default %(default)s)")
    _add_runtime(demo)
    return parser


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser(
        "run",
        help="run the queries of a file",
        description="Runs the queries of a file together, to the end of their input; with --checkpoint the next run "
        "resumes there. INSERT writes to its sink; the rows of other queries are printed. On a terminal there is a "
        "live display. A summary that accounts for every input row is printed to standard error at the end.",
        epilog=f"{_PATHS} {_EXIT}",
    )
    _add_query_file(run)
    _add_within(run)
    _add_runtime(run)
    run.add_argument("--checkpoint", metavar="DIR", help="resume from the checkpoint in this folder, and update it")
    run.add_argument(
        "--every",
        metavar="N",
        type=_count,
        help="steps between two checkpoints (default 16); ignored on Spark, where every batch is a checkpoint",
    )
    run.add_argument(
        "--dead-letters",
        metavar="DIR",
        help="write late and rejected rows, with reasons, below this folder, one folder per query",
    )
    how = run.add_mutually_exclusive_group()
    how.add_argument("--follow", action="store_true", help="wait for more input, until Ctrl-C")
    how.add_argument(
        "--once",
        dest="end",
        action="store_const",
        const=False,
        help="read everything that is there now, and let the next run continue (default with --checkpoint)",
    )
    how.add_argument(
        "--end",
        action="store_true",
        default=None,
        help="the input is complete: emit everything, and let no later run bring more rows (default without "
        "--checkpoint)",
    )
    run.add_argument(
        "--console",
        metavar="HOST:PORT",
        nargs="?",
        const="",
        help="show the run in a browser, on this machine only unless you give another address (default "
        "127.0.0.1:4040; write it after FILE.cql)",
    )
    run.add_argument("--plain", action="store_true", help="no live display on a terminal")
    _add_display_options(run)
    _add_watching(run)


def _add_watching(run: argparse.ArgumentParser) -> None:
    """How the run can be looked at from outside."""
    run.add_argument(
        "--metrics",
        metavar="HOST:PORT",
        nargs="?",
        const="127.0.0.1:9464",
        help="serve Prometheus metrics at /metrics and JSON at /status (default %(const)s; port 0: any free port)",
    )
    run.add_argument(
        "--flight",
        metavar="HOST:PORT",
        nargs="?",
        const="127.0.0.1:9465",
        help="serve live answers, and past ones (SET history), by Arrow Flight SQL (default %(const)s)",
    )
    run.add_argument("--status", metavar="FILE", help="write the status as JSON to this file, every second")
    run.add_argument(
        "--log",
        choices=["text", "json"],
        help="log a line per batch, and warnings, to standard error instead of a display",
    )
    run.add_argument("--log-file", metavar="FILE", help="append the log to this file")


def _add_shell(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    shell = commands.add_parser(
        "shell",
        help="interactive shell",
        description="Reads statements that end with ; from the keyboard or from standard input. HELP lists the other "
        "commands.",
        epilog=f"{_PATHS} {_EXIT}",
    )
    shell.add_argument(
        "file", metavar="FILE.cql", nargs="?", help="statements to execute first; paths are relative to its folder"
    )
    _add_within(shell)
    shell.add_argument("--follow", action="store_true", help="queries wait for more input until they are stopped")
    _add_runtime(shell)
    _add_display_options(shell)


def _add_console(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    console = commands.add_parser(
        "console",
        help="show and edit queries in a browser",
        description="Serves the console on this machine. The queries of FILE.cql run and wait for more input until "
        "Ctrl-C. With the folder of a CHECKPOINT nothing runs; its contents are shown.",
        epilog=f"{_PATHS} {_EXIT}",
    )
    console.add_argument(
        "file", metavar="FILE.cql|CHECKPOINT", nargs="?", help="queries to run, or the folder of a checkpoint"
    )
    _add_within(console)
    _add_runtime(console)
    console.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default=None,
        help="address of the page (default 127.0.0.1:4040; port 0: any free port)",
    )
    console.add_argument(
        "--allow-changes",
        action="store_true",
        help="anyone with the printed address may declare inputs, and start and stop queries",
    )


def _add_runtime(parser: argparse.ArgumentParser, cores: str = "number of cores for Spark (default: all)") -> None:
    parser.add_argument(
        "--runtime",
        metavar="{spark,local}",
        type=_runtime,
        default=os.environ.get("TRANSOM_RUNTIME", "spark"),
        help="run queries on Spark, which is started on this machine, or in this process (default %(default)s; the "
        "environment variable TRANSOM_RUNTIME changes the default)",
    )
    parser.add_argument("--cores", metavar="N", type=_count, help=cores)


def _add_display_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--emit",
        choices=EMITS,
        default="changes",
        help="how printed answers are emitted (default %(default)s)",
    )
    parser.add_argument(
        "--format",
        choices=["table", "csv", "jsonl"],
        help="format of printed rows (default: a table on a terminal, otherwise CSV)",
    )


def _add_query_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.cql", help="the query file; - is standard input")
    parser.add_argument(
        "--set", metavar="OPTION=VALUE", action="append", default=[], help="like SET in the file, and overrides it"
    )


def _add_within(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--within",
        metavar="DIR",
        help="reject files and folders outside of this one, with links resolved; without it a query file may read "
        "and overwrite everything that you may",
    )


def _runtime(text: str) -> str:
    """The runtime by its name; also of what the environment says."""
    if text not in ("spark", "local"):
        raise argparse.ArgumentTypeError(f"there is no runtime '{text}'; write spark or local")
    return text


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number above 0 is expected, not '{text}'")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
