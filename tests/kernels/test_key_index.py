"""Numbers for keys: equal keys have one number, forgotten numbers are given again, and nothing grows that need not."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.stepping import ints
from transom.kernels import keys as key_bytes
from transom.kernels.key_index import KeyIndex
from transom.kernels.keys import encode_keys
from transom.pipeline.registry import STATE_CLASSES
from transom.state import codec

TEXTS = [None, "", "\0", "a", "a\0", *(f"key {i}" for i in range(20)), "long " * 40]


def number(index: KeyIndex, texts: list[str | None]) -> tuple[list[int], list[int]]:
    numbers, brought = index.number(encode_keys([pa.array(texts, pa.string())], len(texts)))
    return numbers.tolist(), brought.tolist()


def agrees_with_a_dictionary(seed: int) -> None:
    random = Random(seed)
    index = KeyIndex()
    known: dict[str | None, int] = {}
    for _ in range(15):
        texts = random.choices(TEXTS, k=random.randrange(12))
        numbers, brought = number(index, texts)
        fresh = [i for i, text in enumerate(texts) if text not in known and text not in texts[:i]]
        assert brought == fresh
        for text, found in zip(texts, numbers, strict=True):
            assert known.setdefault(text, found) == found
        assert len(set(known.values())) == len(known) == index.slots.in_use
        gone = random.sample(sorted(known, key=str), random.randrange(len(known) + 1)) if random.random() < 0.6 else []
        index.forget(ints(known.pop(text) for text in gone))
        if random.random() < 0.2:
            index = codec.decode(codec.encode(index), STATE_CLASSES)
    assert index.slots.high <= len(TEXTS) + 12  # and the most that were requested at once


@settings(max_examples=50)
@given(st.integers(0, 10**9))
def test_numbers_are_those_of_a_dictionary(seed: int) -> None:
    agrees_with_a_dictionary(seed)


def test_also_when_all_hashes_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_bytes, "hash_bytes", lambda data, offsets: np.zeros(len(offsets) - 1, dtype=np.uint64))
    for seed in range(20):
        agrees_with_a_dictionary(seed)


def test_numbers_are_used_again_and_memory_stays_small() -> None:
    index = KeyIndex()
    for step in range(300):
        numbers, brought = number(index, [f"a key of some length {step} {i}" for i in range(10)])
        assert len(brought) == 10 and max(numbers) < 10
        index.forget(ints(numbers))
    assert index.slots.high == 10 and len(index.next) <= 64 and len(index.head) == 64
    assert len(index.keys.columns[0].arena) < 10_000  # type: ignore[union-attr]


def test_the_table_grows_and_finds_everything_again() -> None:
    index = KeyIndex()
    first = {i: number(index, [f"{i}"])[0][0] for i in range(500)}
    assert len(index.head) >= 500
    again, brought = number(index, [f"{i}" for i in range(500)])
    assert again == [first[i] for i in range(500)] and not brought


def test_ranks_follow_the_order_of_values() -> None:
    index = KeyIndex()
    texts = ["b", None, "a\0", "a", "", "b"]
    numbers, _ = number(index, texts)
    assert index.ranks(ints(numbers)).tolist() == [4, 0, 3, 2, 1, 4]
