"""Values that a property takes from the environment, and that no message shows."""

from __future__ import annotations

import os
import re
from typing import Final

from transom.core.text import visible

_NAME: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_SHORTEST: Final = 4
"""Shorter ones would be found in words that have nothing to do with them."""

_names: Final[dict[str, str]] = {}
"""Values that were taken, and what the text calls them."""


def variable_of(text: str) -> str | None:
    """The variable that a property names, if it is one.

    >>> variable_of("$PGPASSWORD"), variable_of("a$b"), variable_of("$")
    ('PGPASSWORD', None, None)
    """
    match = _NAME.fullmatch(text)
    return None if match is None else match[1]


def taken(text: str) -> str | None:
    """The property as it is meant: the value of the variable that it names, None when there is none of that name."""
    name = variable_of(text)
    if name is None:
        return text
    value = os.environ.get(name)
    if value is not None and len(value) >= _SHORTEST:
        _names[value] = text
    return value


def hidden(text: str) -> str:
    """A message without the values that were taken.

    >>> os.environ["SOME_PASSWORD"] = "swordfish"
    >>> taken("$SOME_PASSWORD"), hidden("no user 'swordfish'")
    ('swordfish', "no user '$SOME_PASSWORD'")
    """
    for value, name in _names.items():
        if value in text or visible(value) in text:
            text = text.replace(value, name).replace(visible(value), name)
    return text
