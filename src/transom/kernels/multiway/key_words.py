"""The keys of a join of many inputs as words: two keys of a class are equal exactly when their words are.

A key of a fixed width is a word by itself, its hash. Texts and decimals are numbered, those of all inputs together; a
number is free again when the last row that has it goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s, no_int64s
from transom.kernels.columns import fixed_values
from transom.kernels.jit import jit
from transom.kernels.key_index import KeyIndex
from transom.kernels.keys import encode_keys, hash_words, mix
from transom.kernels.multiway.graph import JoinGraph
from transom.state.slots import grown


@dataclass
class KeyNumbers:
    """The numbers of a class, and how many rows have each.

    >>> keys = KeyNumbers()
    >>> keys.number(pa.array(["x", "y", "x"])).tolist()
    [0, 1, 0]
    >>> keys.forget(np.array([0, 0])); keys.number(pa.array(["z"])).tolist()
    [0]
    """

    index: KeyIndex = field(default_factory=KeyIndex)
    rows: Int64s = field(default_factory=no_int64s)

    def number(self, keys: pa.Array) -> Int64s:
        numbers, _ = self.index.number(encode_keys([keys], len(keys)))
        if self.index.slots.high > len(self.rows):
            self.rows = grown(self.rows, self.index.slots.high)
        np.add.at(self.rows, numbers, 1)
        return numbers

    def forget(self, numbers: Int64s) -> None:
        """So many rows with these numbers go."""
        np.subtract.at(self.rows, numbers, 1)
        used = np.unique(numbers)
        self.index.forget(used[self.rows[used] == 0])


@dataclass
class KeyWords:
    """`numbers[c]` where the keys of class c are numbered."""

    numbers: list[KeyNumbers | None]

    @staticmethod
    def of(graph: JoinGraph) -> KeyWords:
        classes = len(graph.keys[0])
        return KeyWords([KeyNumbers() if graph.keyed((c,)) else None for c in range(classes)])

    def words(self, keys: Sequence[pa.Array | None], rows: int) -> Int64s:
        """words[row, class] of new rows; 0 where they have no key of the class."""
        words = np.zeros((rows, len(keys)), dtype=np.int64)
        for c, (key, numbers) in enumerate(zip(keys, self.numbers, strict=True)):
            if key is not None:
                if numbers is not None:
                    words[:, c] = numbers.number(key)
                elif pa.types.is_floating(key.type):
                    words[:, c] = hash_words([key])[0].view(np.int64)
                else:
                    write_words(fixed_values(key), c, words)
        return words

    def forget(self, classes: frozenset[int], words: Int64s) -> None:
        """Rows go that have keys of these classes, and these words."""
        for c in classes:
            numbers = self.numbers[c]
            if numbers is not None and len(words):
                numbers.forget(words[:, c])


@jit
def write_words(values, c, words):  # type: ignore[no-untyped-def]
    """A bijection of integers of any width, as `hash_words` has it."""
    for row in range(len(values)):
        words[row, c] = np.int64(mix(np.uint64(np.int64(values[row]))))
