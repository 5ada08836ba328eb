"""What a person is told about an error, and how it is said whatever becomes of the output."""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from contextlib import suppress
from typing import Final

from transom.connectors.screen import output_error
from transom.core.errors import TransomError
from transom.core.text import ESCAPED, visible, visible_lines
from transom.pipeline.exhausted import out_of_memory

_OF_OUTPUT: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""What goes wrong when something is printed; files are named."""


def message_of(error: BaseException) -> str:
    """
    >>> print(message_of(TransomError("it is too late", remedy="come earlier")))
    error: it is too late
      come earlier
    """
    if isinstance(error, TransomError):
        return f"error: {error}"
    if isinstance(error, OSError) and error.errno in _OF_OUTPUT and error.filename is None:
        return f"error: {output_error(error)}"
    if isinstance(error, MemoryError):
        return f"error: {out_of_memory()}"
    what = f"error: something went wrong inside Transom: {visible(str(error))}\n"
    if os.environ.get("TRANSOM_DEBUG"):
        return what + visible_lines("".join(traceback.format_exception(error))).rstrip()
    return what + "  this is a bug; please report it with what TRANSOM_DEBUG=1 shows"


def say(text: str) -> None:
    """Print on standard error; where that is closed or full, nobody is there to read it."""
    with suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def prepare_output() -> None:
    """Letters that the output has no code for are written out, and what is closed is as good as nowhere."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ESCAPED)


def drop_unwritten() -> None:
    """What could not be written is not tried again when the process ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
        except ValueError:  # it is closed
            pass
