"""The CQL dialect: all of sqlglot's tokenizer and parser that this project touches is in this file.

sqlglot's own grammar is wide and forgiving. Here its keywords and operator tables are cut down to the language; what
remains of it is the tokenizer and the precedence of operators. Statements, queries and windows are read by the strict
grammar of the `grammar_*` files. Every error is a QueryError with its place.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, ClassVar, Final, NoReturn

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.parser import IsPredicatePrecedence, binary_range_parser
from sqlglot.tokenizer_core import Token, TokenType

from transom.core.errors import QueryError
from transom.core.text import lone_surrogate, visible
from transom.core.time import unit_of
from transom.core.values import Value
from transom.cql import syntax
from transom.cql.foreign import LITERALS, reject_clause
from transom.cql.grammar_expression import (
    at_typed_literal,
    read_between,
    read_bracket,
    read_call,
    read_case,
    read_in,
    read_nested,
    read_part,
    read_path,
    read_predicate,
    read_type,
    read_typed_literal,
)
from transom.cql.grammar_statement import read_statement
from transom.cql.grammar_window import read_interval_value
from transom.cql.nesting import first_too_deep, too_deep
from transom.cql.parameters import constant, reject_unused
from transom.cql.query_text import QueryText
from transom.cql.reader import Reader, Word

_KEYWORDS: Final = """ALL AND ANTI ASOF BETWEEN CASE CROSS DISTINCT ELSE END ESCAPE EXCEPT EXISTS FALSE FETCH FROM FULL
HAVING ILIKE IN INNER INTERSECT INTERVAL INTO IS JOIN LEFT LIKE LIMIT NATURAL NOT NULL OFFSET ON OR OUTER OVER
POSITIONAL QUALIFY RIGHT SELECT SEMI THEN TRUE UNION USING VALUES WHEN WHERE WITH""".split()
_RENAMED: Final = {"AS": TokenType.ALIAS, "GROUP": TokenType.GROUP_BY, "ORDER": TokenType.ORDER_BY}
_SYMBOLS: Final = {
    "::": TokenType.DCOLON,
    "->": TokenType.ARROW,
    "->>": TokenType.DARROW,
    "||": TokenType.DPIPE,
    ">=": TokenType.GTE,
    "<=": TokenType.LTE,
    "<>": TokenType.NEQ,
    "!=": TokenType.NEQ,
    "==": TokenType.EQ,
    "<=>": TokenType.NULLSAFE_EQ,
    "//": TokenType.DIV,
    "**": TokenType.DSTAR,
}
_WORD_KINDS: Final = {
    TokenType.VAR: "name",
    TokenType.IDENTIFIER: "quoted",
    TokenType.STRING: "text",
    TokenType.NUMBER: "number",
    TokenType.SENTINEL: "end",
}


class _Tokenizer(tokens.Tokenizer):
    KEYWORDS: ClassVar = {**_SYMBOLS, **_RENAMED, **{word: TokenType[word] for word in _KEYWORDS}}
    SINGLE_TOKENS: ClassVar = {**tokens.Tokenizer.SINGLE_TOKENS, "!": TokenType.UNKNOWN, "$": TokenType.UNKNOWN}
    IDENTIFIERS: ClassVar = ['"', "`"]
    COMMANDS: ClassVar = set()


# sqlglot adds the comments of a template language to every dialect.
_Tokenizer._COMMENTS.pop("{#", None)


class _TokenWords(Reader):
    """The parser's tokens as the words that the grammar reads."""

    def __init__(self, owner: _ExpressionParser) -> None:
        self.owner = owner
        self._words: dict[int, Word] = {}
        """The same word is looked at again and again: whether it is this, or that."""

    @property
    def source(self) -> QueryText:  # type: ignore[override]
        return QueryText(self.owner.sql)

    def word(self, ahead: int = 0) -> Word:
        owner = self.owner
        at = owner._index + ahead
        if not 0 <= at < owner._tokens_size:
            stop = owner._tokens[-1].end + 1 if owner._tokens else 0
            return Word("end", "", stop, stop + 1)
        word = self._words.get(at)
        if word is None:
            word = self._words[at] = _word(owner._tokens[at])
        return word

    def skip(self, words: int = 1) -> None:
        self.owner._advance(words)

    def expression(self) -> exp.Expr | None:
        expression = self.owner._parse_disjunction()
        if expression is None:
            _reject_foreign(self)
        return expression

    def operand(self) -> exp.Expr | None:
        return self.owner._parse_bitwise()


def _word(token: Token) -> Word:
    kind: Any = _WORD_KINDS.get(token.token_type)
    if kind is None:
        kind = "keyword" if token.text.isidentifier() else "symbol"
    return Word(kind, token.text, token.start, token.end + 1)


class _ExpressionParser(parser.Parser):
    """sqlglot's parser of expressions, with every road out of the language closed."""

    IS_PREDICATE_PRECEDENCE = IsPredicatePrecedence.LOW  # a = b IS NULL means (a = b) IS NULL, as in DuckDB
    ID_VAR_TOKENS: ClassVar = {TokenType.VAR}
    PLACEHOLDER_PARSERS: ClassVar[dict[Any, Any]] = {}
    BITWISE: ClassVar = {TokenType.AMP: exp.BitwiseAnd, TokenType.PIPE: exp.BitwiseOr}
    EXPONENT: ClassVar = {TokenType.CARET: exp.Pow, TokenType.DSTAR: exp.Pow}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[Any, Any]] = {}
    EQUALITY: ClassVar = {TokenType.EQ: exp.EQ, TokenType.NEQ: exp.NEQ, TokenType.NULLSAFE_EQ: exp.NullSafeEQ}
    COMPARISON: ClassVar = {
        TokenType.LT: exp.LT,
        TokenType.LTE: exp.LTE,
        TokenType.GT: exp.GT,
        TokenType.GTE: exp.GTE,
    }
    TERM: ClassVar = {TokenType.DASH: exp.Sub, TokenType.PLUS: exp.Add}
    FACTOR: ClassVar = {
        TokenType.STAR: exp.Mul,
        TokenType.SLASH: exp.Div,
        TokenType.DIV: exp.IntDiv,
        TokenType.MOD: exp.Mod,
    }
    UNARY_PARSERS: ClassVar = {
        kind: parser.Parser.UNARY_PARSERS[kind]
        for kind in (TokenType.PLUS, TokenType.NOT, TokenType.DASH, TokenType.TILDE)
    }
    COLUMN_OPERATORS: ClassVar = {
        kind: parser.Parser.COLUMN_OPERATORS[kind] for kind in (TokenType.DOT, TokenType.DCOLON)
    }
    RANGE_PARSERS: ClassVar = {
        TokenType.BETWEEN: lambda self, this: read_between(self.words, this),
        TokenType.IN: lambda self, this: read_in(self.words, this),
        TokenType.IS: lambda self, this: self._parse_is(this),
        TokenType.LIKE: binary_range_parser(exp.Like),
        TokenType.ILIKE: binary_range_parser(exp.ILike),
        TokenType.VAR: lambda self, this: read_predicate(self.words, this),
    }
    PRIMARY_PARSERS: ClassVar[dict[Any, Callable[[Any, Token], exp.Expr]]] = {
        TokenType.STRING: lambda self, token: self.expression(exp.Literal(this=token.text, is_string=True), token),
        TokenType.NUMBER: lambda self, token: self.expression(exp.Literal(this=token.text, is_string=False), token),
        TokenType.NULL: lambda self, token: self.expression(exp.Null(), token),
        TokenType.TRUE: lambda self, token: self.expression(exp.Boolean(this=True), token),
        TokenType.FALSE: lambda self, token: self.expression(exp.Boolean(this=False), token),
        TokenType.STAR: lambda self, token: self.expression(exp.Star(), token),
    }

    @cached_property
    def words(self) -> _TokenWords:
        """Of what is read now: `parse` takes a parser for every statement."""
        return _TokenWords(self)

    def _parse_statement(self) -> exp.Expr | None:
        return read_statement(self.words)

    def raise_error(self, message: str, token: Token = parser.SENTINEL_NONE) -> NoReturn:
        """sqlglot's complaints in our words: its own name its classes."""
        words = self.words
        at = _word(token) if token else words.word()
        if at.kind == "end":
            words.reject("the statement ends too early", "complete it, or remove what is begun and not finished")
        if not token or at == words.word():
            _reject_foreign(words)
        if message.startswith("Required"):
            words.reject(f"a value is missing before {at}", "write a column, a constant or an expression", at)
        before = words.word(-1)
        meant = difflib.get_close_matches(before.text.upper(), _CLAUSES, n=1, cutoff=0.75)
        if not token and before.kind == "name" and meant:  # a slip of the pen was taken for the name of what precedes
            words.reject(f"{before} is not expected here", f"did you mean {meant[0]}?", before)
        words.reject(f"{at} is not expected here", _remedy_for(at), at)

    # --- the leaves of expressions -----------------------------------------------------------------------------------

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
        words = self.words
        if words.at("INTERVAL"):
            return self._parse_column_ops(read_interval_value(words))
        if at_typed_literal(words):
            return self._parse_column_ops(read_typed_literal(words))
        column = self._parse_column()
        while column is not None and words.word().kind == "symbol" and words.word().text in ("->", "->>"):
            column = self._parse_column_ops(read_path(words, column))
        return column

    def _parse_function_call(
        self,
        functions: dict[str, Any] | None = None,
        anonymous: bool = False,
        optional_parens: bool = True,
        any_token: bool = False,
    ) -> exp.Expr | None:
        words = self.words
        return read_case(words) if words.at("CASE") else read_call(words)

    def _parse_primary(self) -> exp.Expr | None:
        token, words = self._curr, self.words
        if words.at(".") and words.word(1).kind == "number":
            self._advance(2)
            literal = exp.Literal(this="." + self._prev.text, is_string=False)
            return words.spanned(literal, words.word(-2))
        if reads := self.PRIMARY_PARSERS.get(token.token_type):
            self._advance()
            return reads(self, token)
        return read_nested(words) or read_bracket(words)

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        """What stands behind a value: the index of an element, the name of a field."""
        words = self.words
        while this is not None and words.word().kind == "symbol" and words.at("["):
            this = read_part(words, this)
        if words.word().kind == "symbol" and words.at("{"):
            words.reject("{ is not expected here", "write {'a': 1, 'b': 2} for a struct, with a comma before it")
        return this

    def _parse_types(
        self,
        check_func: bool = False,
        schema: bool = False,
        allow_identifiers: bool = True,
        with_collation: bool = False,
    ) -> exp.Expr | None:
        return read_type(self.words)


def _reject_foreign(words: _TokenWords) -> None:
    """What others write: by the word that is not expected, or the one before it that was taken for a name."""
    before, at = words.word(-1), words.word()
    if at.kind == "text" and before.capitals in LITERALS:
        words.reject(f"a constant {before} is not supported", LITERALS[before.capitals], before)
    reject_clause(words)
    if before.kind == "name":
        reject_clause(words, behind=1)


_CLAUSES: Final = ("FROM", "WHERE", "GROUP", "HAVING", "JOIN", "UNION", "EXCEPT", "INTERSECT")


def _remedy_for(word: Word) -> str:
    if word.kind == "name":
        return "a comma, an operator or AS is missing before it, or it does not belong here"
    if word.kind == "text":
        return 'a comma or an operator is missing before it; names stand in "double quotes"'
    if word.text == ")":
        return "remove it, or write the '(' that it closes"
    return "remove it, or complete what stands before it"


class CQL(Dialect):
    NUMBERS_CAN_BE_UNDERSCORE_SEPARATED = True
    Tokenizer = _Tokenizer
    Parser = _ExpressionParser


def parse(text: str, parameters: Mapping[str, Value] = MappingProxyType({})) -> list[exp.Expr]:
    """The statements of a text, unbound. Raises nothing but QueryError (and RecursionError, past the bounds)."""
    source = QueryText(text)
    statements: list[list[Token]] = [[]]
    for token in _with_constants(_tokenize(source), source, parameters):
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    dialect = Dialect.get_or_raise(CQL)
    parsed = [node for part in statements if part for node in dialect.parser().parse(part, text)]
    return [node for node in parsed if node is not None]


def parse_type(text: str) -> syntax.TypeName | syntax.NestedType:
    """A type that is a text of its own, unbound."""
    dialect = Dialect.get_or_raise(CQL)
    (data_type,) = dialect.parser().parse_into(exp.DataType, _tokenize(QueryText(text)), text)
    assert isinstance(data_type, syntax.TypeName | syntax.NestedType)
    return data_type


def _tokenize(source: QueryText) -> list[Token]:
    text = source.text
    if (half := lone_surrogate(text)) is not None:
        span = source.span(half, half + 1)
        remedy = "write whole characters; the text was decoded wrongly, perhaps, where it was read"
        raise QueryError(
            "the text has half a character (a lone surrogate)", remedy=remedy, span=span, text=visible(text)
        )
    try:
        tokens = Dialect.get_or_raise(CQL).tokenize(text)
    except TokenError as error:
        raise _unclosed(source, error) from None
    for before, token in zip([None, *tokens], tokens, strict=False):
        is_name = token.token_type == TokenType.VAR
        glued = before is not None and before.token_type == TokenType.NUMBER and before.end + 1 == token.start
        if is_name and (not token.text.isidentifier() or (glued and unit_of(token.text) is None)):
            written = text[before.start if glued and before else token.start : token.end + 1]
            remedy = 'write names with letters, digits and _, not a digit first, or put them into "quotes"'
            span = source.span(token.start, token.end + 1)
            raise QueryError(f"'{written}' is no name", remedy=remedy, span=span, text=text)
    deep = first_too_deep(_word(token).capitals for token in tokens)
    if deep is not None:
        raise too_deep(source.span(tokens[deep].start, tokens[deep].end + 1), text)
    return tokens


def _with_constants(tokens: list[Token], source: QueryText, parameters: Mapping[str, Value]) -> Iterator[Token]:
    """The words of a text, those of a constant in the place of every parameter."""
    used: set[str] = set()
    rest = iter(zip_longest(tokens, tokens[1:]))
    for token, follower in rest:
        name = "" if follower is None else source.text[follower.start : follower.end + 1]  # it may be a keyword
        if token.text != "$" or follower is None or follower.start != token.end + 1 or not name.isidentifier():
            yield token
            continue
        next(rest)
        if name not in parameters:
            span = source.span(token.start, follower.end + 1)
            raise QueryError(
                f"the parameter '${name}' has no value", remedy=f"give it as {name}=..", span=span, text=source.text
            )
        used.add(name)
        for word in Dialect.get_or_raise(CQL).tokenize(constant(name, parameters[name])):
            yield Token(word.token_type, word.text, token.line, token.col, token.start, follower.end)
    reject_unused(parameters, used)


def _unclosed(source: QueryText, error: TokenError) -> QueryError:
    """The tokenizer fails on what has no end: a quote, of which it names the start, or a comment."""
    opened = re.search(r"Missing (.).* from \d+:(\d+)", str(error.__cause__))
    start = int(opened[2]) if opened else max(source.text.rfind("/*"), 0)
    what, closing = (f"a {opened[1]}", opened[1]) if opened else ("a comment", "*/")
    span = source.span(start, start + 1)
    return QueryError(f"{what} is not closed", remedy=f"write the closing {closing}", span=span, text=source.text)
