"""What the grammar stands on: words read one after another, and errors at the word where reading stopped.

The grammar files know this class and nothing of sqlglot's parser; `dialect.py` fills in the abstract methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal as OneOf
from typing import NoReturn, TypeVar

from sqlglot import exp

from transom.core.errors import QueryError
from transom.cql.query_text import QueryText

Read = TypeVar("Read")
Node = TypeVar("Node", bound=exp.Expr)


@dataclass(frozen=True)
class Word:
    """One token of the text: text[start:stop]. `end` stands behind the last one."""

    kind: OneOf["name", "quoted", "text", "number", "keyword", "symbol", "end"]
    text: str
    start: int
    stop: int

    @cached_property
    def capitals(self) -> str:
        """What keywords are compared with; nothing for quoted words and texts, which are never keywords."""
        return "" if self.kind in ("quoted", "text", "end") else self.text.upper()

    @property
    def is_name(self) -> bool:
        return self.kind in ("name", "quoted")

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else f"'{self.text}'"


class Reader(ABC):
    """A text being read, word by word, from left to right."""

    source: QueryText

    @abstractmethod
    def word(self, ahead: int = 0) -> Word:
        """The word under the eye, or one further on (or back, for `ahead` below 0)."""

    @abstractmethod
    def skip(self, words: int = 1) -> None: ...

    @abstractmethod
    def expression(self) -> exp.Expr | None:
        """Reads a scalar expression, by sqlglot's precedence of operators; None where none begins."""

    @abstractmethod
    def operand(self) -> exp.Expr | None:
        """The same, but stops before AND, OR, NOT, IN and comparisons."""

    # --- looking and taking ------------------------------------------------------------------------------------------

    def at(self, *words: str) -> bool:
        if self.word().capitals != words[0]:  # nearly always
            return False
        return all(self.word(i).capitals == words[i] for i in range(1, len(words)))

    def take(self, *words: str) -> bool:
        """Reads the words if they stand here."""
        is_here = self.at(*words)
        if is_here:
            self.skip(len(words))
        return is_here

    def take_one_of(self, *words: str) -> str | None:
        word = self.word().capitals
        if word not in words:
            return None
        self.skip()
        return word

    def need(self, *words: str) -> None:
        if not self.take(*words):
            self.reject(f"{' '.join(words)} is missing before {self.word()}", f"write {' '.join(words)} here")

    def name(self, what: str, any_word: bool = False) -> exp.Identifier:
        """A name; with `any_word` keywords too, where nothing else could stand."""
        word = self.word()
        if not word.text or not (word.is_name or (any_word and word.kind == "keyword")):
            self.reject(f"{what} is expected, not {word}", 'write a name; put it into "quotes" if it is a keyword')
        self.skip()
        return self.spanned(exp.Identifier(this=word.text, quoted=word.kind == "quoted"), word)

    def listed(self, read: Callable[[], Read]) -> list[Read]:
        items = [read()]
        while self.take(","):
            items.append(read())
        return items

    def wrapped(self, read: Callable[[], Read]) -> Read:
        self.need("(")
        inner = read()
        self.need(")")
        return inner

    def column_names(self) -> list[exp.Identifier]:
        return self.wrapped(lambda: self.listed(lambda: self.name("a column name")))

    def column_names_if_any(self) -> list[exp.Identifier] | None:
        return self.column_names() if self.at("(") else None

    def literal(self, kind: OneOf["number", "text"], what: str, remedy: str) -> exp.Literal:
        word = self.word()
        if word.kind != kind:
            self.reject(f"{what} is expected, not {word}", remedy)
        self.skip()
        return self.spanned(exp.Literal(this=word.text, is_string=kind == "text"), word)

    def value(self) -> exp.Expr:
        value = self.expression()
        if value is None:
            self.reject(f"a value is missing before {self.word()}", "write a column, a constant or an expression")
        return value

    # --- places ------------------------------------------------------------------------------------------------------

    def spanned(self, node: Node, start: Word) -> Node:
        """The node, marked as all that was read since the word `start`."""
        node.meta["start"], node.meta["end"] = start.start, self.word(-1).stop - 1
        return node

    def reject(self, what: str, remedy: str | None = None, at: Word | None = None) -> NoReturn:
        word = at or self.word()
        span = self.source.span(word.start, word.stop)
        raise QueryError(what, remedy=remedy, span=span, text=self.source.text)
