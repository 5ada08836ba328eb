"""Quick looks at JSON lines beside slow ones: they may cry wolf, and never miss one."""

from __future__ import annotations

import json
import re

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from transom.connectors.json_scan import Quotes, may_be_huge

NAMES = ("k", "ts", "price", "Betrag_ü", "a_long_name_of_24_letters", "sixteen_letters_", 'with "quotes"', "")
cased = st.sampled_from(NAMES).flatmap(
    lambda name: st.lists(st.booleans(), min_size=len(name), max_size=len(name)).map(
        lambda upper: "".join(
            letter.upper() if up and letter.isascii() else letter for letter, up in zip(name, upper, strict=True)
        )
    )
)
numbers = st.sampled_from(
    ["1", "-1.5", "1e5", "1E-5", "2.e+7", "e1", "9" * 38, "9" * 39, "1." + "3" * 38, "9" * 60, '"1e5"', '"x1e5"']
)
lines = st.lists(st.lists(st.tuples(cased, numbers), max_size=4), max_size=4).map(
    lambda rows: "".join(
        "{" + ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {value}" for name, value in row) + "}\n"
        for row in rows
    ).encode()
)
HUGE = re.compile(rb'[0-9.]{39,}|[0-9.][eE][+-]?[0-9]+"?\s*[,}]')


@example(b'{"customer_namE": 1}', "customer_name")  # a name of more letters than a word has
@given(lines, st.sampled_from(NAMES))
def test_a_name_in_other_letters_is_never_missed(text: bytes, name: str) -> None:
    quoted = json.dumps(name, ensure_ascii=False).encode()
    others = text.lower().count(quoted.lower()) != text.count(quoted)
    assert Quotes(np.frombuffer(text, np.uint8)).may_spell_otherwise(name) >= others


@given(lines)
def test_a_huge_number_is_never_missed(text: bytes) -> None:
    assert may_be_huge(np.frombuffer(text, np.uint8)) >= (HUGE.search(text) is not None)


def test_ordinary_lines_are_not_suspected() -> None:
    text = b'{"ts": "2024-05-01 10:00:00.123", "k": 12345678, "name": "Customer Number 7", "price": 99.25}\n' * 10
    quotes = Quotes(np.frombuffer(text, np.uint8))
    assert not any(quotes.may_spell_otherwise(name) for name in ("ts", "k", "name", "price"))
    assert not may_be_huge(np.frombuffer(text, np.uint8))
