"""What a person is told about an error."""

from __future__ import annotations

import os
import traceback

from transom.core.errors import TransomError


def message_of(error: BaseException) -> str:
    """
    >>> print(message_of(TransomError("it is too late", remedy="come earlier")))
    error: it is too late
      come earlier
    """
    if isinstance(error, TransomError):
        return f"error: {error}"
    what = f"error: something went wrong inside Transom: {error}\n"
    if os.environ.get("TRANSOM_DEBUG"):
        return what + "".join(traceback.format_exception(error)).rstrip()
    return what + "  this is a bug; please report it with what TRANSOM_DEBUG=1 shows"
