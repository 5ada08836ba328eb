"""Errors of workers, on their way to the user.

A worker's error reaches the driver as a text within texts of the JVM. So that it arrives as what it was, it is written
down between two marks, and read back from whatever is around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from transom.core import errors
from transom.core.errors import SparkError, TransomError

_OPEN: Final = "<<transom "
_CLOSE: Final = " transom>>"
_MARKED: Final = re.compile(re.escape(_OPEN) + r"(.*?)" + re.escape(_CLOSE), re.DOTALL)


class ToldToTheDriver(Exception):
    """An error of ours in a form that survives the way through the JVM."""


@contextmanager
def told_to_the_driver() -> Iterator[None]:
    try:
        yield
    except TransomError as error:
        raise ToldToTheDriver(marked(error)) from None
    except (MemoryError, OSError) as error:
        what = f"a worker failed: {type(error).__name__}: {error}"
        raise ToldToTheDriver(marked(SparkError(what, remedy="see that it has memory and room on disk"))) from None


def marked(error: TransomError) -> str:
    """
    >>> read_back("Caused by: " + marked(errors.EvaluationError("no", remedy="yes")) + " at java.lang").remedy
    'yes'
    """
    told = {
        "class": type(error).__name__, "what": error.what, "remedy": error.remedy, "operator": error.operator
    }  # fmt: skip
    # Whatever the JVM does to line ends and quotes, letters and digits come through.
    return _OPEN + json.dumps(told).encode().hex() + _CLOSE


def read_back(text: str) -> TransomError | None:
    """The error of ours in a text, if there is one."""
    found = _MARKED.search(text)
    if found is None:
        return None
    told = json.loads(bytes.fromhex(found.group(1)))
    known = getattr(errors, told["class"], TransomError)
    assert issubclass(known, TransomError)
    error = known(told["what"], remedy=told["remedy"])
    error.operator = told["operator"]
    return error


def first_line(text: str) -> str:
    """What a text of the JVM says first, without the words that lead up to it.

    >>> first_line("An error occurred while calling o1.start.\\n: java.io.IOException: no chmod\\n\\tat x")
    'java.io.IOException: no chmod'
    """
    lines = [line.removeprefix(": ").strip() for line in text.splitlines()]
    return next((line for line in lines if line and not line.startswith("An error occurred while calling")), "")[:300]
