"""Arguments of a program that may be of any type, whatever is written beside them."""

from __future__ import annotations

import os

from transom.core.errors import OptionError, TransomError


def require_text(value: object, what: str, error: type[TransomError] = OptionError) -> None:
    """
    >>> require_text(None, "the name of a stream")
    Traceback (most recent call last):
        ...
    transom.core.errors.OptionError: the name of a stream is a text, not NoneType
      give a str
    """
    if not isinstance(value, str):
        raise error(f"{what} is a text, not {type(value).__name__}", remedy="give a str")


def require_path(value: object, what: str) -> None:
    if not isinstance(value, str | os.PathLike):
        raise OptionError(f"{what} is a folder, not {type(value).__name__}", remedy="give its path")
