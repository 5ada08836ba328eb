"""Makes processes for the driver's side of Spark out of one that has everything imported (see `launcher.py`)."""

from __future__ import annotations

import gc
import os
import runpy
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress
from typing import Final, NoReturn

from transom.runtimes.spark.launcher import FORKED, SOCKET
from transom.runtimes.spark.python_path import without_archives

_POLL: Final = 2.0
"""Seconds between two looks whether the daemon is still there."""


def start(folder: str) -> None:
    """Begin to listen in the folder, in a process of its own that ends with this one."""
    daemon = os.getpid()
    if os.fork():
        return
    status = 1
    try:
        serve(folder, daemon)
        status = 0
    except Exception:
        traceback.print_exc()  # Spark starts processes by itself then
    finally:
        os._exit(status)


def serve(folder: str, daemon: int) -> None:
    """Fork whenever it is asked for, as long as the parent is `daemon`."""
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who has ended is forgotten
    path = os.path.join(folder, SOCKET)
    with socket.socket(socket.AF_UNIX) as listening:
        # Under its own name only when it listens: one that the daemon before had is replaced in one step.
        listening.bind(f"{path}-{os.getpid()}")
        listening.listen()
        os.rename(f"{path}-{os.getpid()}", path)
        listening.settimeout(_POLL)
        while os.getppid() == daemon:
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                continue
            with connection:
                if not os.fork():
                    listening.close()
                    _fork_again(connection)


def _fork_again(connection: socket.socket) -> NoReturn:
    """Between the server and what it makes is a process that stays as long: so whose daemon it was does not matter.

    Whoever is left behind by a parent that ends takes it for the end of the driver. And nobody has to wait for what has
    ended who may not care to, as the first process of a container.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    made = os.fork()
    if made:
        connection.close()
        os.waitpid(made, 0)
        os._exit(0)
    status = 1
    try:
        status = _run(connection)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
            connection.sendall(bytes([status]))
        os._exit(status)


def _run(connection: socket.socket) -> int:
    """Be the process that was asked for; its status."""
    connection.settimeout(None)
    head, descriptors, _, _ = socket.recv_fds(connection, 8, 2)
    request = _received(connection, int.from_bytes(head, "little")).split(b"\0")
    module, folder = map(os.fsdecode, request[:2])
    for descriptor, given in enumerate(descriptors, start=1):
        os.dup2(given, descriptor)
        os.close(given)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.environb.clear()
    os.environb.update(dict(variable.split(b"=", 1) for variable in request[2:]))
    os.chdir(folder)
    path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = without_archives([*dict.fromkeys([folder, *path, *sys.path])])
    if module not in FORKED:
        return 1
    connection.sendall(b"\0")
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    sys.modules.pop(module, None)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as over:
        return over.code & 0xFF if isinstance(over.code, int) else int(over.code is not None)
    return 0


def _received(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        more = connection.recv(size - len(received))
        if not more:
            raise EOFError
        received += more
    return bytes(received)


def _end_with(connection: socket.socket) -> None:
    """Whoever stands for this process is gone: so is what it was wanted for."""
    with suppress(OSError):
        connection.recv(1)
    os.kill(os.getpid(), signal.SIGKILL)
