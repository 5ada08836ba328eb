"""The nodes that CQL adds to sqlglot's trees. They hold what was written; the binder says what it means."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


class Duration(exp.Expression):
    """A number or text and, unless the text names it, a unit: `10 SECONDS`, `INTERVAL '10' SECOND`.

    With two units, as in `INTERVAL '1-6' YEAR TO MONTH`, `last` is the second.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "unit": False, "last": False}


class IntervalOf(exp.Expression):
    """`INTERVAL (n) DAY`: as many of a unit as an expression says."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "unit": True}


class WindowClause(exp.Expression):
    """What stands in the brackets behind a stream."""

    arg_types: ClassVar[dict[str, bool]] = {
        "partition": False,
        "rows": False,
        "range": False,
        "unbounded": False,
        "now": False,
        "slide": False,
        "session": False,
    }


class TypeName(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False}


class NestedType(exp.Expression):
    """An ARRAY of one type, or a STRUCT of several with their names."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "names": False, "types": True}


class StructValue(exp.Expression):
    """{'a': 1, 'b': 2}: the names of the fields and their values."""

    arg_types: ClassVar[dict[str, bool]] = {"names": True, "expressions": True}


class Subscript(exp.Expression):
    """value[index]: an element of an array, or the field of a struct."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "index": True}


class Quantified(exp.Expression):
    """ANY (query), ALL (query), or those of an array: what stands behind a comparison."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "query": False, "array": False}


class UnnestItem(exp.Expression):
    """UNNEST(array) in FROM."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": False, "columns": False, "numbered": False}


class TypedLiteral(exp.Expression):
    """DATE '2024-05-01': `this` is the text, `to` the type."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "to": True}


class Item(exp.Expression):
    """One entry of a SELECT list; `text` is how its expression was written."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": False, "text": True}


class ModifiedCall(exp.Expression):
    """A call with what aggregates have: ORDER BY `order`, FILTER (WHERE `condition`), IGNORE or RESPECT `nulls`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "order": False, "condition": False, "nulls": False}


class FromItem(exp.Expression):
    """One input in FROM: a name, a query, or joined inputs in parentheses; perhaps windowed, perhaps renamed.

    `as_of` is the time behind FOR SYSTEM_TIME AS OF. A query that is `lateral` reads the inputs before it.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "lateral": False,
        "window": False,
        "as_of": False,
        "alias": False,
        "columns": False,
    }


class FileName(exp.Expression):
    """'data/x.parquet' in the place of a name: `this` is the path."""


class WindowFunction(exp.Expression):
    """TUMBLE, HOP or SESSION (`kind`) of a stream or query, by its time column; the durations as they were written."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "kind": True,
        "partition": False,
        "time": True,
        "durations": True,
    }


class Deduplication(exp.Expression):
    """DEDUPLICATE of a stream or query."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "partition": True, "length": True}


class JoinedSources(exp.Expression):
    """`this` and the joins behind it, from left to right."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "joins": False}


class SortItem(exp.Expression):
    """One entry of an ORDER BY."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "descending": True, "nulls_first": True}


class OrderClause(exp.Expression):
    """ORDER BY `keys` LIMIT `limit` OFFSET `offset`; a limit that is Null lets all rows through."""

    arg_types: ClassVar[dict[str, bool]] = {"keys": False, "limit": False, "offset": False}


class Ordered(exp.Expression):
    """A query that is no single block, with its ordering."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "ordering": True}


class Ranked(exp.Expression):
    """ROW_NUMBER() OVER (PARTITION BY `partition` ORDER BY `keys`) and its two sisters; `this` is the name."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "partition": False,
        "keys": False,
        "frame": False,
        "named": False,
    }


class OverCall(Ranked):
    """Any other call with OVER: `this` is the call, `frame` what stands behind ORDER BY; `named` in OVER w until WINDOW
    says what that is."""


class FrameClause(exp.Expression):
    """ROWS (or RANGE, GROUPS: `peers`) BETWEEN `start` AND `end`: numbers of places, or in RANGE distances; without one
    there is no bound."""

    arg_types: ClassVar[dict[str, bool]] = {"peers": True, "start": False, "end": False}


class Distance(exp.Expression):
    """INTERVAL '1' HOUR PRECEDING, or 5 FOLLOWING: how far the value is by which the rows of a frame are ordered."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "following": True}


class StreamOf(exp.Expression):
    """ISTREAM(query) and its two sisters; `change` is the word in lower case. `word`: written SELECT ISTREAM .."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "change": True, "word": False}


class Bracketed(exp.Expression):
    """A query in parentheses."""


class WithQuery(exp.Expression):
    """WITH named queries, and the query that uses them."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


class NamedQuery(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": True, "columns": False}


# --- statements ------------------------------------------------------------------------------------------------------


class ColumnDeclaration(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "kind": True,
        "invisible": False,
        "primary": False,
        "not_null": False,
        "metadata": False,
    }


class Watermark(exp.Expression):
    """WATERMARK FOR `this` AS `source` [- `bound`]."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "source": True, "bound": False}


class KeyDeclaration(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class Setting(exp.Expression):
    """key = value, in WITH (..) and in SET."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "value": True}


class CreateInput(exp.Expression):
    """CREATE STREAM and CREATE TABLE."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "kind": True,
        "parts": True,
        "settings": False,
        "if_exists": False,
    }


class CreateView(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {"this": True, "columns": False, "query": True, "if_exists": False}


class CreateSink(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {"this": True, "settings": False, "if_exists": False}


class Drop(exp.Expression):
    """DROP `kind` `this`; `quiet` with IF EXISTS."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True, "quiet": False}


class Show(exp.Expression):
    """SHOW `this`, a word; or DESCRIBE `name`, which may be a file."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "name": False}


class Values(exp.Expression):
    """VALUES (..), (..): a list of rows, each a Tuple."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class InsertInto(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {"this": True, "query": True}


class Explain(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {"query": True, "analyze": False, "json": False}


class SetOption(exp.Expression):
    """SET option = value; `this` is the Setting."""
