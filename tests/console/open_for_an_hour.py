"""Whether pages that are left open grow: `python -m tests.console.open_for_an_hour --csv FILE`, an hour by the clock.

Queries run in a process of their own at a few rows a second, and five pages show what there is to be seen of them. Once
a minute, after garbage was collected: what each page holds, and the memory of the queries' process.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import sys
import time
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Final

from benchmarks.console import COUNTING
from tests.console.browser import browser, held_by, page
from tests.console.building import Building

if TYPE_CHECKING:
    from playwright.sync_api import Page

VIEWS: Final = (
    "queries", "query/hot rooms/plan", "query/hot rooms/answer", "query/hot rooms/inputs", "query/hot rooms/history",
)  # fmt: skip
COLUMNS: Final = ("minute", "view", "messages", "heap_bytes", "nodes", "listeners", "server_bytes", "complaints")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=62)
    parser.add_argument("--every", type=float, default=60, help="seconds between looks")
    parser.add_argument("--csv", help="where the figures go; otherwise they are printed")
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    queries = multiprocessing.get_context("spawn").Process(target=run_queries, args=(theirs,), daemon=True)
    queries.start()
    url = str(ours.recv()).partition("#")[0]
    began = time.monotonic()
    with ExitStack() as stack:
        opened = stack.enter_context(browser())
        file = stack.enter_context(open(options.csv or "/dev/stdout", "w", newline="", encoding="utf-8"))
        lines = csv.writer(file)
        lines.writerow(COLUMNS)
        pages: dict[str, tuple[Page, list[str]]] = {}
        for view in VIEWS:
            pages[view] = stack.enter_context(page(opened))
            shown, _ = pages[view]
            shown.add_init_script(COUNTING)
            shown.goto(f"{url}#/{view.replace(' ', '%20')}")
        last = next(iter(pages.values()))[0]
        while (minute := (time.monotonic() - began) / 60) < options.minutes:
            last.wait_for_timeout(options.every * 1000)
            for view, (shown, complaints) in pages.items():
                row: list[Any] = [f"{minute:.1f}", view, shown.evaluate("window.seen"), *held_by(shown)]
                lines.writerow([*row, resident(queries.pid or 0), len(complaints)])
            file.flush()
        for view, (_, complaints) in pages.items():
            for text in complaints[:5]:
                print(f"{view}: {text}", file=sys.stderr)
    ours.send("over")
    queries.join(30)


def run_queries(pipe: Connection) -> None:
    building = Building(speed=1.0, pause=0.1)
    building.start()
    pipe.send(building.session.console("127.0.0.1:0").url)
    pipe.recv()
    building.close()


def resident(pid: int) -> int:
    """Bytes of memory of a process."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


if __name__ == "__main__":
    main()
