"""Errors of workers, on their way to the user.

A worker's error reaches the driver as a text within texts of the JVM. So that it arrives as what it was, it is written
down between two marks, and read back from whatever is around it. What a person reads comes first: with a DataFrame it
is the user's own streaming query that fails, and its text is all that is shown.
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
_MARKED: Final = re.compile(re.escape(_OPEN) + r"([0-9a-f]+)" + re.escape(_CLOSE))
_PLAN: Final = "=== Streaming Query ==="
"""Behind it Spark says how the query was doing, with its plan."""

_EXCEPTION: Final = re.compile(r"^(?:Caused by: |: )?(?=[\w.$]+(?:Exception|Error)(?::|$))")
_CLASS: Final = re.compile(r"^[\w.$]+(?:Exception|Error): ")


class ReportedToDriver(Exception):
    """An error of ours in a form that survives the way through the JVM."""


@contextmanager
def reported_to_driver() -> Iterator[None]:
    try:
        yield
    except TransomError as error:
        raise ReportedToDriver(marked(error)) from None
    except (MemoryError, OSError) as error:
        what = f"a worker failed: {type(error).__name__}: {error}"
        raise ReportedToDriver(marked(SparkError(what, remedy="see that it has memory and room on disk"))) from None


def marked(error: TransomError) -> str:
    """
    >>> read_back("Caused by: " + marked(errors.EvaluationError("no", remedy="yes")) + " at java.lang").remedy
    'yes'
    >>> print(marked(errors.EvaluationError("no", remedy="yes")).partition("<<")[0])
    no
      yes
    <BLANKLINE>
    """
    described = {
        "class": type(error).__name__, "what": error.what, "remedy": error.remedy, "operator": error.operator
    }  # fmt: skip
    plain = str(error).replace(_OPEN, _OPEN.replace("<<", "< <"))  # it may quote a row, which may hold anything
    # Whatever the JVM does to line ends and quotes, letters and digits come through.
    return f"{plain}\n" + _OPEN + json.dumps(described).encode().hex() + _CLOSE


def read_back(text: str) -> TransomError | None:
    """The error of ours in a text, if there is one."""
    match = _MARKED.search(text)
    if match is None:
        return None
    described = json.loads(bytes.fromhex(match.group(1)))
    error_class = getattr(errors, described["class"], TransomError)
    assert issubclass(error_class, TransomError)
    error = error_class(described["what"], remedy=described["remedy"])
    error.operator = described["operator"]
    return error


def exceptions(text: str) -> list[str]:
    """What a text of the JVM says went wrong, one line an exception: the first is what came of it, the last the cause.

    Where they were raised, and what Spark says of the query and its plan, is left out.

    >>> exceptions("Checksum error: /c/1\\n\\tat x.y\\nCaused by: a.BException: no\\n\\n=== Streaming Query ===\\nplan")
    ['Checksum error: /c/1', 'a.BException: no']
    """
    lines = [line for line in text.partition(_PLAN)[0].splitlines() if line.strip()]
    first, rest = lines[:1], lines[1:]
    return [_EXCEPTION.sub("", line).strip() for line in (*first, *filter(_EXCEPTION.search, rest))]


def without_class(exception: str) -> str:
    """
    >>> without_class("java.io.IOException: no chmod")
    'no chmod'
    """
    return _CLASS.sub("", exception)


def cause(text: str) -> str:
    """The first thing that went wrong, by a text of the JVM.

    >>> cause("An error occurred while calling o1.start.\\n: java.io.IOException: no chmod\\n\\tat x")
    'java.io.IOException: no chmod'
    """
    return next(reversed(exceptions(text)), "")[:300]
