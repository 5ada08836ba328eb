"""What Spark starts as its Python in a session of ours: it has processes forked that would take long to start.

Spark starts a process for every source and every stateful stage of a query, on the driver, and waits while it imports
PySpark and Transom: half a second each time. The daemon of the workers has imported all of it (`fork_server.py`); it
makes the process, and this one, which has imported next to nothing, stands for it: they end together. Where there is no
such daemon, and for all else that Spark wants of Python, this becomes that Python.

It is run by its path and without `site`, and imports only what Python has in itself: to import `socket` and `typing`
takes longer than all else that is done here.
"""

from __future__ import annotations

import _socket
import array
import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

FOLDER: Final = "TRANSOM_FORK_SERVER"
"""The variable that names the folder of the socket to whoever is to listen there."""

SOCKET: Final = "fork"

FORKED: Final = frozenset(
    ("pyspark.sql.streaming.python_streaming_source_runner", "pyspark.sql.streaming.transform_with_state_driver_worker")
)
"""Modules that Spark runs in processes of their own, and never through a daemon."""

_LONGEST_ANSWER: Final = 3.0
"""Seconds until Python is started instead; Spark waits for ten."""


def write_launcher(folder: str) -> str:
    """A program in the folder that Spark can start as its Python; its path, or Python's where there can be none."""
    if not os.path.isfile(__file__):
        return sys.executable
    path = os.path.join(folder, "python")
    words = (sys.executable, "-I", "-S", os.path.abspath(__file__), folder)
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
    with open(path, "wb") as file:
        file.write(os.fsencode(f'#!/bin/sh\nexec {quoted} "$@"\n'))
    os.chmod(path, 0o700)
    return path if os.access(path, os.X_OK) else sys.executable  # no program may lie on some disks


def main(folder: str, arguments: Sequence[str]) -> None:
    if len(arguments) == 2 and arguments[0] == "-m" and arguments[1] in FORKED:
        connection = _forked(folder, arguments[1])
        if connection is not None:
            sys.exit(_stand_for(connection))
    os.environ[FOLDER] = folder
    os.execv(sys.executable, [sys.executable, *arguments])


def _forked(folder: str, module: str) -> _socket.socket | None:
    """The way to a process that runs the module with what this one has; None: nobody makes one."""
    connection = _socket.socket(_socket.AF_UNIX)
    try:
        connection.settimeout(_LONGEST_ANSWER)
        connection.connect(os.path.join(folder, SOCKET))
        variables = [name + b"=" + value for name, value in os.environb.items()]
        request = b"\0".join([module.encode(), os.getcwdb(), *variables])
        given = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [1, 2]))
        connection.sendmsg([len(request).to_bytes(8, "little")], [given])
        connection.sendall(request)
        if connection.recv(1) != b"\0":
            return None
    except OSError:
        return None
    connection.settimeout(None)
    return connection


def _stand_for(connection: _socket.socket) -> int:
    """Until the process ends; its status. It ends when this one does, which ends when whoever started it is gone."""
    while True:
        readable, _, _ = select.select([connection.fileno(), 0], [], [])
        if connection.fileno() in readable:
            status = connection.recv(1)
            return status[0] if status else 1
        if not os.read(0, 1):
            return 1


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
