"""A command on a pseudo-terminal, as a person has it: keys go in, and what is drawn comes out as text."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.cli.commands import command, environment

CTRL_C: Final = "\x03"
CTRL_D: Final = "\x04"
ENTER: Final = "\r"

_ROWS, _COLUMNS = 50, 160
_PATIENCE: Final = 120.0
"""Seconds after which something is taken to hang: far more than a loaded machine needs to compile the loops."""

# The command is the leader of a session with this terminal, so that Ctrl-C reaches it as from a keyboard.
_BEGIN: Final = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
_DRAWING: Final = re.compile(r"\x1b\[[0-9;?>=]*[ -/]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>78]|\x1b\][^\x07]*\x07|\r")


class Terminal:
    def __init__(self, arguments: tuple[str | Path, ...], folder: Path, output: Path | None = None) -> None:
        """`output`: standard output goes to this file, and only the rest is seen."""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        variables = {**environment(), "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "HOME": str(folder)}
        variables.pop("XDG_STATE_HOME", None)
        with contextlib.ExitStack() as opened:
            out = slave if output is None else opened.enter_context(output.open("wb"))
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BEGIN, *command(*arguments)],
                cwd=folder,
                env=variables,
                stdin=slave,
                stdout=out,
                stderr=slave,
                start_new_session=True,
            )
        os.close(slave)
        self._drawn = b""
        self._seen_to = 0
        self._ended = False

    @property
    def text(self) -> str:
        """All that was drawn, without the moving of the cursor: a display that was renewed is there several times."""
        return _DRAWING.sub("", self._drawn.decode("utf-8", "replace"))

    @property
    def drawn(self) -> bytes:
        """All that came, as it came."""
        return self._drawn

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def expect(self, words: str) -> None:
        """Waits for the words, after those of the last time."""
        deadline = time.monotonic() + _PATIENCE
        while (at := self.text.find(words, self._seen_to)) < 0:
            if not self._read(deadline):
                raise AssertionError(f"'{words}' was not seen at the end of:\n{self.text[-3000:]}")
        self._seen_to = at + len(words)

    def wait(self) -> int:
        """The exit code, after all output."""
        deadline = time.monotonic() + _PATIENCE
        while self._read(deadline):
            pass
        return self._process.wait(max(1.0, deadline - time.monotonic()))

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._master)

    def _read(self, deadline: float) -> bool:
        """Some more output; False at its end, and when it takes too long."""
        while not self._ended and time.monotonic() < deadline:
            if select.select([self._master], [], [], 1.0)[0]:
                try:
                    data = os.read(self._master, 65_536)
                except OSError:  # what Linux says when nobody has the other side open any longer
                    data = b""
                self._drawn += data
                self._ended = not data
                return bool(data)
        return False


@contextlib.contextmanager
def terminal(*arguments: str | Path, folder: Path, output: Path | None = None) -> Iterator[Terminal]:
    opened = Terminal(arguments, folder, output)
    try:
        yield opened
    finally:
        opened.close()
