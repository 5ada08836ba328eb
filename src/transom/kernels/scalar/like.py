"""LIKE and ILIKE: % is any text, _ any one character, and an escape character only where ESCAPE names one."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.schema import BOOLEAN
from transom.kernels.scalar.text import EMPTY, lower
from transom.kernels.scalar.values import Kernel, Value, by_row
from transom.plan.expression import Call, Literal

ANY: Final = None
"""A % in a parsed pattern."""
ONE: Final = 0
"""A _ in a parsed pattern."""

Token = str | int | None


def like(call: Call) -> Kernel:
    pattern = call.arguments[1]
    escape = call.arguments[2].value if len(call.arguments) > 2 and isinstance(call.arguments[2], Literal) else None
    folds = call.function == "ilike"
    if isinstance(pattern, Literal) and pattern.value is not None:
        folded = lower(pa.scalar(pattern.value)).as_py() if folds else pattern.value
        matches = _matcher(parse(folded, escape))
        return lambda text, *_: matches(lower(text) if folds else text)

    def run(text: Value, patterns: Value, *_: Value) -> Value:
        if folds:
            text, patterns = lower(text), lower(patterns)
        return by_row(lambda t, p: _match(t, parse(p, escape)), (text, patterns), BOOLEAN)

    return run


def parse(pattern: str, escape: str | None) -> list[Token]:
    """The pattern as literal texts, ONE and ANY.

    >>> parse("a%!%", "!")
    ['a', None, '%']
    """
    tokens: list[Token] = []
    characters = iter(pattern)
    for character in characters:
        token: Token
        if character == escape:
            token = next(characters)
        else:
            token = ANY if character == "%" else ONE if character == "_" else character
        if isinstance(token, str) and tokens and isinstance(tokens[-1], str):
            tokens[-1] += token
        elif token is not ANY or not tokens or tokens[-1] is not ANY:
            tokens.append(token)
    return tokens


def _matcher(tokens: list[Token]) -> Kernel:
    """The cheapest Arrow kernel for a pattern that is the same for all rows."""
    match tokens:
        case []:
            return lambda text: pc.equal(text, EMPTY)
        case [str(all_of_it)]:
            constant = pa.scalar(all_of_it)
            return lambda text: pc.equal(text, constant)
        case [str(start), None]:
            return lambda text: pc.starts_with(text, start)
        case [None, str(end)]:
            return lambda text: pc.ends_with(text, end)
        case [None, str(middle), None]:
            return lambda text: pc.match_substring(text, middle)
    regex = r"(?s)\A" + "".join(_as_regex(token) for token in tokens) + r"\z"

    def run(text: Value) -> Value:
        try:
            return pc.match_substring_regex(text, regex)
        except pa.ArrowInvalid:  # the pattern is too large for an automaton
            return by_row(lambda t: _match(t, tokens), (text,), BOOLEAN)

    return run


def _as_regex(token: Token) -> str:
    if not isinstance(token, str):
        return ".*" if token is ANY else "."
    return "".join(c if c.isalnum() or ord(c) > 127 else f"\\x{{{ord(c):x}}}" for c in token)


def _match(text: str, tokens: list[Token]) -> bool:
    """Greedy matching with one point to return to, the last %: never more than the product of both lengths."""
    at = token = 0
    back: tuple[int, int] | None = None
    while at < len(text) or token < len(tokens):
        part = tokens[token] if token < len(tokens) else ""
        if part is ANY:
            back = (at, token)
            token += 1
        elif part == ONE and at < len(text):
            at, token = at + 1, token + 1
        elif isinstance(part, str) and part and text.startswith(part, at):
            at, token = at + len(part), token + 1
        elif back is not None and back[0] < len(text):
            back = (back[0] + 1, back[1])
            at, token = back[0], back[1] + 1
        else:
            return False
    return True
