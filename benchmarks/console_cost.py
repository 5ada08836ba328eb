"""What a watched console costs the queries that it shows: `python -m benchmarks.console_cost`.

Twenty queries in one thread take small batches as fast as they can; ten clients watch, each another query and its
answer, in every second half of a round: they read what a page is sent, by plain sockets, and are no browsers. What the
threads of the console take of the process is what the queries cannot have; of several rounds the median is given, as
other programs run beside.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import socket
import threading
import time
from statistics import median
from typing import Final

import pyarrow as pa

from transom import Session

QUERIES: Final = 20
ROWS: Final = 20
CLIENTS: Final = 10
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8, help="of a round, of which half are watched")
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    found: dict[bool, list[tuple[float, float, float]]] = {False: [], True: []}
    with Session(batch_rows=ROWS) as session:
        session.stream("s", rows(2 * options.rounds * (options.seconds + 4)), time="ts")
        for number in range(QUERIES):
            text = f"SELECT k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] WHERE k <> {number} GROUP BY k"
            session.add(text, name=f"q{number}", on_rows=lambda rows: None)
        time.sleep(5)  # kernels are loaded
        console = session.console("127.0.0.1:0")
        threads = [thread.native_id or 0 for thread in console.threads]
        for _ in range(options.rounds):
            found[False].append(measured(session, options.seconds, threads))
            browsers = multiprocessing.get_context("spawn").Process(
                target=watch, args=(console.address.port,), daemon=True
            )
            browsers.start()
            time.sleep(3)
            found[True].append(measured(session, options.seconds, threads))
            browsers.terminate()
            browsers.join()
        if not session.queries:
            raise SystemExit("the input came to its end: the figures mean nothing")
        session.close()
    for watched, what in ((False, "nobody watches"), (True, "ten watch")):
        batches, total, shown = (median(values) for values in zip(*found[watched], strict=True))
        share = median(one[2] / one[1] for one in found[watched])
        print(f"{what:>15}: {batches / QUERIES:6.1f} batches/s a query; the process took {total:4.0%} of a core")
        print(f"{'':>15}  the console took {shown:5.2%} of a core, {share:5.2%} of the process")


def rows(seconds: float) -> pa.Table:
    """More than can be read in that time."""
    count = int((seconds + 10) * 400) * ROWS
    at = pa.array(range(1_700_000_000_000_000, 1_700_000_000_000_000 + count * 1000, 1000), pa.int64())
    return pa.table({"ts": at.cast(pa.timestamp("us")), "k": pa.array([i % ROWS for i in range(count)], pa.int32())})


def measured(session: Session, seconds: float, threads: list[int]) -> tuple[float, float, float]:
    """Batches a second of all queries, and what of a core the process and the threads of the console took."""
    before = sum(query.status.steps for query in session.queries), time.process_time(), used(threads)
    began = time.perf_counter()
    time.sleep(seconds)
    wall = time.perf_counter() - began
    after = sum(query.status.steps for query in session.queries), time.process_time(), used(threads)
    batches, total, shown = ((now - then) / wall for now, then in zip(after, before, strict=True))
    return batches, total, shown


def used(threads: list[int]) -> float:
    """CPU seconds of threads of this process."""
    found = 0.0
    for thread in threads:
        with open(f"/proc/self/task/{thread}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        found += (int(fields[11]) + int(fields[12])) / _TICKS
    return found


def watch(port: int) -> None:
    """Ten browsers: each follows a query and its answer."""
    opened = []
    for number in range(CLIENTS):
        one = socket.create_connection(("127.0.0.1", port))
        path = f"/api/events?query=q{number}&wants=answer"
        one.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        opened.append(one)
    threads = [threading.Thread(target=drain, args=(one,)) for one in opened]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def drain(one: socket.socket) -> None:
    while one.recv(1 << 16):
        pass


if __name__ == "__main__":
    main()
