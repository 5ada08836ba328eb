"""Quick looks at a text of JSON lines, over all of its bytes at once: whether there may be something in it that has to
be looked for. They may cry wolf, and never miss one.
"""

from __future__ import annotations

import json
from typing import Final

import numpy as np
import numpy.typing as npt

from transom.core.delta import Int64s

Bytes = npt.NDArray[np.uint8]

_WORD: Final = 8
_LOWER: Final = np.uint64(0x2020202020202020)
"""The bit by which letters in lower case differ from those in upper case."""

_RUN: Final = 39
"""Digits that a decimal has not."""


def quoted_name(name: str) -> bytes:
    """A name as JSON has it."""
    return json.dumps(name, ensure_ascii=False).encode("utf-8", "surrogatepass")


class Quotes:
    """Where the quotes of a text are. A name stands between two that follow each other at its own distance, which few
    others do; its first and last letters are compared eight at a time."""

    def __init__(self, text: Bytes) -> None:
        padded = np.zeros(len(text) + _WORD, dtype=np.uint8)
        padded[: len(text)] = text
        self._words: npt.NDArray[np.uint64] = np.ndarray((len(text) + 1,), np.dtype("<u8"), padded, strides=(1,))
        self._at: Int64s = np.flatnonzero(text == ord('"'))
        self._distances = np.diff(self._at)

    def may_spell_otherwise(self, name: str) -> bool:
        """Whether some name may be this one but for the case of its letters.

        >>> quotes = Quotes(np.frombuffer(b'{"price": 1, "Total_of_all": "k"}', np.uint8))
        >>> [quotes.may_spell_otherwise(name) for name in ("price", "Price", "total_of_all", "Total_of_all", "k", "K")]
        [False, True, True, False, False, True]
        """
        quoted = quoted_name(name)
        inner = quoted[1:-1]
        if b'"' in inner or not inner:
            return True  # its own quotes lie between
        begins = self._at[:-1][self._distances == len(inner) + 1] + 1
        return any(
            self._differ(begins + at, inner[at : at + _WORD])
            for at in {*range(0, len(inner) - _WORD + 1, _WORD), max(0, len(inner) - _WORD)}
        )

    def _differ(self, positions: Int64s, wanted: bytes) -> bool:
        """Whether somewhere there are the same letters, and not in the same case."""
        mask = np.uint64((1 << 8 * len(wanted)) - 1)
        exact = np.uint64(int.from_bytes(wanted, "little"))
        letters = self._words[positions] & mask
        others = letters[letters != exact]
        return bool(len(others)) and bool(((others | (_LOWER & mask)) == (exact | (_LOWER & mask))).any())


def may_be_huge(text: Bytes) -> bool:
    """Whether there may be a number with more digits than a decimal has, or with an exponent.

    >>> [may_be_huge(np.frombuffer(text, np.uint8)) for text in (b'{"e1": 12.5}', b'{"a": 1E5}', b"9" * 39, b"9" * 25)]
    [False, True, True, False]
    """
    digits = (text - ord("0") < 10) | (text == ord("."))  # bytes below "0" go around, and are large
    exponents = ((text | 0x20) == ord("e"))[1:] & digits[:-1]
    behind = text[np.minimum(np.flatnonzero(exponents) + 2, len(text) - 1)]
    if ((behind - ord("0") < 10) | (behind == ord("+")) | (behind == ord("-"))).any():
        return True
    length = 1
    while length < _RUN and len(digits):  # where a run of so many begins
        more = min(length, _RUN - length)
        digits, length = digits[:-more] & digits[more:], length + more
    return bool(digits.any())
