"""Scalar expressions: names become positions, operators and functions get their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final
from typing import Literal as OneOf

import pyarrow as pa
from sqlglot import exp

from transom.core.errors import QueryError
from transom.core.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    JSON,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    is_array,
    is_nested,
    sql_name,
)
from transom.core.time import months_of, unit_of
from transom.cql import syntax
from transom.cql.bind_order import BoundOver, RankCall, RankFunction, RankRef, SortValue
from transom.cql.compared_rows import every_row, some_row
from transom.cql.context import Context
from transom.cql.distribution import DISTRIBUTIONS, distribution
from transom.cql.foreign import CALLS, COLUMNS
from transom.cql.grammar_order import RANKS
from transom.cql.grammar_table_function import GROUP_WINDOWS
from transom.cql.limits import check_expression
from transom.cql.literals import bind_constant, bind_interval, bind_type, bind_typed_literal, unit_interval
from transom.cql.one_row import has_one_row
from transom.cql.query_text import span_of
from transom.cql.scope import Scope
from transom.plan import functions
from transom.plan.algebra import AggregateCall, OverFrame, Project
from transom.plan.expression import ColumnRef, Exists, Expression, InQuery, Literal, ScalarQuery
from transom.plan.intervals import Interval
from transom.plan.nested_functions import part_type
from transom.plan.python_function import PythonFunction, python_call

WALL_CLOCK: Final = frozenset(
    """now today current_timestamp current_date current_time localtime localtimestamp transaction_timestamp
    get_current_timestamp get_current_time clock_timestamp statement_timestamp""".split()
)
CHANCE: Final = frozenset("random rand setseed uuid uuidv4 uuidv7 gen_random_uuid nextval currval".split())
_OTHER_AGGREGATES: Final = frozenset(
    """product rollup cube grouping_sets row_number rank dense_rank
    lag lead ntile percent_rank cume_dist nth_value""".split()
)
_DATE_PARTS: Final = """year quarter month week day dow doy isodow isoyear decade century hour minute second millisecond
microsecond epoch""".split()
_MOVES: Final = {"date_add": "+", "date_sub": "-"}
"""Functions of others that move a moment by an interval, or a day by a number of them."""
_TO_UNITS: Final = {
    f"to_{unit}s": unit
    for unit in "year month week day hour minute second millisecond microsecond quarter decade".split()
}
_BINARY: Final[dict[type[exp.Expr], str]] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%", exp.DPipe: "||",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "is_not_distinct", exp.Pow: "power",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>",
}  # fmt: skip

_VALUES_OVER: Final = ("lag", "lead", "first_value", "last_value", "nth_value")
_COLLECTING: Final = ("string_agg", "array_agg")
_COUNT: Final = AggregateCall("count", None, BIGINT)
_TO_PEERS: Final = OverFrame(None, 0, peers=True)
_NONE: Final = Literal(0, BIGINT)
_MOST_PLACES: Final = 10**9
_FARTHEST: Final = 10**16
_GROUPINGS: Final = ("grouping", "grouping_id")

_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


@dataclass(frozen=True)
class AggregateRef(Expression):
    """The value of an aggregate, while the expression around it is bound; never leaves this room."""

    index: int
    call: AggregateCall

    @property
    def type(self) -> pa.DataType:
        return self.call.result_type


@dataclass(frozen=True)
class GroupingRef(Expression):
    """GROUPING(a, ..), while the expression around it is bound; never leaves this room."""

    keys: tuple[Expression, ...]

    @property
    def type(self) -> pa.DataType:
        return BIGINT

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.keys

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, keys=children)

    def __str__(self) -> str:
        return f"grouping({', '.join(map(str, self.keys))})"


@dataclass(frozen=True)
class _Seen:
    """Where a value with OVER is looked for: the frame, how to ask for a call of it, whether NULLs are left out."""

    frame: OverFrame | None
    call: Callable[..., Expression]
    no_nulls: bool


def _ignores_nulls(modified: syntax.ModifiedCall | None) -> bool:
    nulls = None if modified is None else modified.args.get("nulls")
    return nulls is not None and nulls.name == "IGNORE"


@dataclass
class ExpressionBinder:
    """Binds the expressions of one clause.

    `clause` names it in errors. `calls` numbers the aggregates as they come; None where there can be none; so does
    `ranks` for all that has OVER (..). `aliases`
    are names of the SELECT list that may be used where FROM does not know a name. `sub_queries` says whether EXISTS and
    IN (query) can stand here. `written` remembers where each column was written, for errors found later.
    """

    context: Context
    scope: Scope
    clause: str
    calls: dict[AggregateCall, int] | None = None
    aliases: dict[str, exp.Expr] = field(default_factory=dict)
    sub_queries: bool = True
    written: list[tuple[Expression, exp.Expr]] = field(default_factory=list)
    ranks: dict[RankCall | BoundOver, int] | None = None

    def bind(self, node: exp.Expr) -> Expression:
        kind = type(node)
        if kind in _BINARY:
            bound = self._binary(node, _BINARY[kind])
        elif kind in _HANDLERS:
            bound = _HANDLERS[kind](self, node)
        else:
            raise self._error("this is not part of the language", node, "write it with the operators and functions")
        if bound.excerpt is None:
            bound = replace(bound, excerpt=self.context.source.excerpt(node))
        return check_expression(bound, self.context.measure, node, self.context.source)

    def condition(self, node: exp.Expr) -> Expression:
        """An expression that is true or not."""
        bound = self.bind(node)
        with self.context.at(node):
            return functions.truth(bound)

    def _error(self, what: str, node: exp.Expr, remedy: str) -> QueryError:
        return self.context.source.error(what, node, remedy)

    def _resolve(self, node: exp.Expr, function: str, *arguments: Expression) -> Expression:
        with self.context.at(node):
            return functions.resolve(function, arguments)

    # --- names and constants -----------------------------------------------------------------------------------------

    def _column(self, node: exp.Column) -> Expression:
        if isinstance(node.this, exp.Star):
            raise self._error("* is no value", node, "write it alone in the SELECT list, or COUNT(*)")
        written = [node.args.get(part) for part in ("catalog", "db", "table", "this")]
        names = [each.name for each in written if isinstance(each, exp.Identifier)]
        if not isinstance(node.this, exp.Identifier):
            raise self._error("this is no name of a column", node, "write column or input.column")
        if len(names) > 1 and (around := self._field(node, names)) is not None:
            return around
        if len(names) > 2:
            raise self._unknown(node, names[1], names[0])
        name, qualifier = names[-1], names[0] if len(names) > 1 else None
        meanings = self.scope.find(name, qualifier)
        if not meanings and qualifier is None and name.lower() in self.aliases:
            alias = self.aliases.pop(name.lower())  # not seen within itself
            try:
                return self.bind(alias)
            finally:
                self.aliases[name.lower()] = alias
        meanings = meanings or self.scope.find_around(name, qualifier)
        if len(meanings) > 1:
            choices = [c for c in self.scope.candidates(name, qualifier) if c.lower().endswith(f".{name.lower()}")]
            remedy = f"write {' or '.join(choices)}" if len(set(choices)) > 1 else "give its inputs different names"
            raise self._error(f"'{name}' is ambiguous", node, remedy)
        if not meanings:
            raise self._unknown(node, name, qualifier)
        value = replace(meanings[0], excerpt=self.context.source.excerpt(node))
        self.written.append((value, node))
        return value

    def _field(self, node: exp.Column, names: list[str]) -> Expression | None:
        """input.column.field.. or column.field..: the names of inputs come first."""
        inputs, columns = self.scope.find(names[1], names[0]), self.scope.find(names[0], None)
        if not inputs and not columns:
            inputs, columns = self.scope.find_around(names[1], names[0]), self.scope.find_around(names[0], None)
        meanings, fields = (inputs, names[2:]) if inputs else (columns, names[1:])
        if len(meanings) != 1 or not fields or not (is_nested(meanings[0].type) or len(names) > 2):
            return None
        value = replace(meanings[0], excerpt=self.context.source.excerpt(node))
        self.written.append((value, node))
        with self.context.at(node):
            for name in fields:
                value = functions.field_of(value, name)
        return value

    def _dot(self, node: exp.Dot) -> Expression:
        value, name = self.bind(node.this), node.args["expression"]
        if not isinstance(name, exp.Identifier):
            raise self._error("this is no field", node, "write struct.field")
        with self.context.at(node):
            return functions.field_of(value, name.name)

    def _subscript(self, node: syntax.Subscript) -> Expression:
        value = self.bind(node.this)
        if not is_nested(value.type) and value.type != functions.NULL:
            remedy = "an index stands behind an array, as in a[1]; a window behind a stream, as in FROM S [ROWS 10]"
            raise self._error(f"'{value}' is no array and has no elements", node, remedy)
        return self._resolve(node, "list_extract", value, self.bind(node.args["index"]))

    def _struct(self, node: syntax.StructValue) -> Expression:
        values = tuple(self.bind(value) for value in node.expressions)
        with self.context.at(node):
            return functions.struct_of(tuple(name.name for name in node.args["names"]), values)

    def _unknown(self, node: exp.Column, name: str, qualifier: str | None) -> QueryError:
        if qualifier is None and name.lower() in WALL_CLOCK | CHANCE:
            return self._impure(node, name)
        if qualifier is not None and qualifier.lower() == "window" and not self.scope.has_input(qualifier):
            raise self._error("WINDOW over a column is not supported", node, f"write {GROUP_WINDOWS['window']}")
        if qualifier is not None and not self.scope.has_input(qualifier):
            aliases = self.scope.aliases()
            columns = self.scope.find(qualifier, None)
            if len(columns) == 1 and columns[0].type == JSON:
                return self._error(
                    f"'{qualifier}' is JSON and has no columns", node, f"write {qualifier} ->> '$.{name}'"
                )
            remedy = f"the inputs are {', '.join(aliases)}" if aliases else "give the input an alias"
            return self._error(f"there is no input '{qualifier}' in FROM", node, remedy)
        if name.lower() in COLUMNS:
            return self._error(f"there is no column '{name}'", node, COLUMNS[name.lower()])
        if not self.scope.inputs and qualifier is None:
            remedy = "write FROM with the stream, table or view that it is a column of"
            return self._error(f"there is no column '{name}' where there is no FROM", node, remedy)
        written = name if qualifier is None else f"{qualifier}.{name}"
        remedy = self.scope.remedy(name, qualifier)
        if qualifier is None and self.context.source.text[span_of(node)[0]] == '"':
            remedy = f"a text stands in single quotes: '{name}'; {remedy}"
        return self._error(f"there is no column '{written}'", node, remedy)

    def _impure(self, node: exp.Expr, name: str) -> QueryError:
        if name.lower() in WALL_CLOCK:
            remedy = "write FROM s [RANGE 1 HOUR] for the rows of the last hour; its time column has the time of a row"
            return self._error(f"functions of the wall clock are not supported, and '{name}' is one", node, remedy)
        remedy = "a query gives the same answer whenever it runs; compute such values before they come in"
        return self._error(f"functions of chance are not supported, and '{name}' is one", node, remedy)

    def _literal(self, node: exp.Literal) -> Expression:
        return bind_constant(node, self.context.source)

    def _typed_literal(self, node: syntax.TypedLiteral) -> Expression:
        return bind_typed_literal(node, self.context.source)

    def _star(self, node: exp.Expr) -> Expression:
        raise self._error("* is no value", node, "write it alone in the SELECT list, or COUNT(*)")

    def _duration(self, node: syntax.Duration) -> Expression:
        return bind_interval(node, self.context.source)

    def _interval_of(self, node: syntax.IntervalOf) -> Expression:
        return self._resolve(node, "*", unit_interval(node.args["unit"].name), self.bind(node.this))

    # --- operators ---------------------------------------------------------------------------------------------------

    def _binary(self, node: exp.Expr, function: str) -> Expression:
        left, right = node.this, node.args["expression"]
        if isinstance(node, _COMPARISONS) and isinstance(left, _COMPARISONS):
            raise self._error("comparisons cannot be chained", node, "write a < b AND b < c, or use parentheses")
        if isinstance(right, syntax.Quantified) and isinstance(node, _COMPARISONS):
            return self._compared(node, function, right)
        return self._resolve(node, function, self.bind(left), self.bind(right))

    def _connected(self, node: exp.Expr) -> Expression:
        """AND and OR of any length as one call, without recursion along the chain."""
        parts, at = [], node
        while type(at) is type(node):
            parts.append(at.args["expression"])
            at = at.this
        parts.append(at)
        function = "and" if isinstance(node, exp.And) else "or"
        return self._resolve(node, function, *(self.condition(part) for part in reversed(parts)))

    def _not(self, node: exp.Expr) -> Expression:
        return self._resolve(node, "not", self.bind(node.this))

    def _negate(self, node: exp.Expr) -> Expression:
        return self._resolve(node, "negate", self.bind(node.this))

    def _distinct_from(self, node: exp.Expr) -> Expression:
        return self._resolve(node, "not", self._binary(node, "is_not_distinct"))

    def _is(self, node: exp.Is) -> Expression:
        other = node.args["expression"]
        if isinstance(other, exp.Null):
            answer = self._resolve(node, "is_null", self.bind(node.this))
        elif isinstance(other, exp.Boolean):
            value = self.condition(node.this)
            answer = self._resolve(node, "is_not_distinct", value, Literal(bool(other.this), BOOLEAN))
        elif isinstance(other, exp.Column) and other.sql().upper() == "UNKNOWN":
            answer = self._resolve(node, "is_null", self.condition(node.this))
        else:
            remedy = "write IS NULL, IS TRUE, IS FALSE, IS UNKNOWN, or IS NOT DISTINCT FROM value"
            raise self._error("IS cannot be followed by this", other, remedy)
        return self._resolve(node, "not", answer) if node.args.get("negate") else answer

    def _between(self, node: exp.Between) -> Expression:
        value, low, high = (self.bind(each) for each in (node.this, node.args["low"], node.args["high"]))
        if node.args.get("symmetric"):
            either_way = (self._within(node, value, *ends) for ends in ((low, high), (high, low)))
            return self._resolve(node, "or", *either_way)
        return self._within(node, value, low, high)

    def _within(self, node: exp.Expr, value: Expression, least: Expression, most: Expression) -> Expression:
        low, high = self._resolve(node, ">=", value, least), self._resolve(node, "<=", value, most)
        return self._resolve(node, "and", low, high)

    def _like(self, node: exp.Expr, escape: exp.Expr | None = None) -> Expression:
        function = "ilike" if isinstance(node, exp.ILike) else "like"
        arguments = [self.bind(node.this), self.bind(node.args["expression"])]
        if escape is not None:
            arguments.append(self.bind(escape))
        answer = self._resolve(node, function, *arguments)
        return self._resolve(node, "not", answer) if node.args.get("negate") else answer

    def _escape(self, node: exp.Expr) -> Expression:
        return self._like(node.this, node.args["expression"])

    def _case(self, node: exp.Case) -> Expression:
        operand = self.bind(node.this) if node.this is not None else None
        conditions, results = [], []
        for arm in node.args["ifs"]:
            if operand is None:
                conditions.append(self.condition(arm.this))
            else:
                conditions.append(self._resolve(arm.this, "=", operand, self.bind(arm.this)))
            results.append(self.bind(arm.args["true"]))
        default = node.args.get("default")
        otherwise = self.bind(default) if default is not None else None
        with self.context.at(node):
            return functions.case(tuple(conditions), tuple(results), otherwise)

    def _cast(self, node: exp.Expr) -> Expression:
        if node.args["to"].name == "INTERVAL" and isinstance(node.this, exp.Literal) and node.this.is_string:
            return bind_interval(syntax.Duration(this=node.this.copy()), self.context.source)
        operand, target = self.bind(node.this), bind_type(node.args["to"], self.context.source)
        with self.context.at(node):
            return functions.cast(operand, target, isinstance(node, exp.TryCast))

    # --- sub-queries -------------------------------------------------------------------------------------------------

    def _need_sub_queries(self, node: exp.Expr) -> None:
        if not self.sub_queries:
            remedy = "write it in WHERE; to test groups, put the grouped query into FROM and test its rows"
            if self.clause == "ON":
                remedy = "select the rows before they are joined: LEFT JOIN (SELECT .. WHERE ..) AS b ON .."
            raise self._error(f"{self.clause} cannot hold a sub-query", node, remedy)

    def _exists(self, node: exp.Exists) -> Expression:
        self._need_sub_queries(node)
        return Exists(self.context.bind_relation(node.this, self.scope, "EXISTS"))

    def _in(self, node: exp.In) -> Expression:
        query = node.args.get("query")
        if isinstance(node.this, exp.Tuple) and query is not None:
            self._need_sub_queries(node)
            values = [self.bind(each) for each in node.this.expressions]
            rows = self.context.bind_relation(query, self.scope, "IN")
            with self.context.at(node):
                return some_row(values, rows, lambda left, right: self._resolve(node, "=", left, right))
        value = self.bind(node.this)
        if query is None:
            return self._resolve(node, "in", value, *(self.bind(item) for item in node.expressions))
        self._need_sub_queries(node)
        relation = self.context.bind_relation(query, self.scope, "IN")
        if len(relation.schema) != 1:
            raise self._error(f"the query of IN has {len(relation.schema)} columns", query, "select one column")
        column = relation.schema[0]
        ref = ColumnRef(0, column.type, column.name)
        # A comparison of the two says in which type they meet.
        met = self._resolve(node, "=", value, ref)
        value, casted = met.children
        if casted is not ref:
            relation = Project(relation, (casted,), (column.name,))
        return InQuery(value, relation)

    def _compared(self, node: exp.Expr, function: str, rows: syntax.Quantified) -> Expression:
        """A comparison with ANY or ALL rows of a query, or elements of an array."""
        if (array := rows.args.get("array")) is not None:
            return self._among(node, function, rows, array)
        self._need_sub_queries(node)
        query = self.context.bind_relation(rows.args["query"], self.scope, rows.name)
        value = self.bind(node.this)
        with self.context.at(node):
            if rows.name == "ALL":
                return every_row(value, query, lambda left, right: self._resolve(node, function, left, right))
            return some_row((value,), query, lambda left, right: self._resolve(node, function, left, right))

    def _among(self, node: exp.Expr, function: str, rows: syntax.Quantified, array: exp.Expr) -> Expression:
        """a = ANY (array), and a <> ALL (array): unknown where only a NULL could be it; NULL has no elements."""
        if (function, rows.name) not in (("=", "ANY"), ("=", "SOME"), ("<>", "ALL")):
            remedy = "write a = ANY (array), a <> ALL (array), or compare with a query: a > ALL (SELECT ..)"
            raise self._error(f"{function} {rows.name} is not for arrays", rows, remedy)
        value = self.bind(node.this)
        if isinstance(array, exp.Anonymous) and array.name.lower() == "list_value" and array.expressions:
            contained = self._resolve(node, "in", value, *map(self.bind, array.expressions))
        else:
            elements = self.bind(array)
            there = self._resolve(node, "list_contains", elements, value)
            if not is_array(elements.type):
                raise self._error(f"{rows.name} takes a query or an array", array, "write a = b for one value")
            nothing = Literal(None, elements.type.value_type)
            with self.context.at(node):
                count = self._resolve(node, "coalesce", self._resolve(node, "array_length", elements), _NONE)
                empty = self._resolve(node, "=", count, _NONE)
                where = self._resolve(node, "list_position", elements, nothing)
                unknown = self._resolve(node, "not", self._resolve(node, "is_null", where))
                answers = (Literal(False, BOOLEAN), Literal(True, BOOLEAN), Literal(None, BOOLEAN))
                contained = functions.case((empty, there, unknown), answers, there)
        return contained if function == "=" else self._resolve(node, "not", contained)

    def _scalar_query(self, node: exp.Expr) -> Expression:
        self._need_sub_queries(node)
        relation = self.context.bind_relation(node.this, self.scope, "a query as a value")
        if len(relation.schema) != 1:
            raise self._error(f"a query as a value has {len(relation.schema)} columns", node, "select one column")
        if not has_one_row(relation, self.context.catalogue):
            remedy = "select an aggregate without GROUP BY, such as MAX(..), write LIMIT 1, or compare the primary key"
            raise self._error("a query as a value may have more than one row", node, remedy)
        return ScalarQuery(relation)

    def _quantified(self, node: syntax.Quantified) -> Expression:
        raise self._error(f"{node.name} stands behind a comparison", node, f"write a > {node.name} (SELECT ..)")

    def _tuple(self, node: exp.Expr) -> Expression:
        """(a, b): a struct whose fields have no names that anybody wrote."""
        values = tuple(self.bind(value) for value in node.expressions)
        with self.context.at(node):
            return functions.struct_of(tuple(f"v{i}" for i in range(1, len(values) + 1)), values)

    # --- ranks -------------------------------------------------------------------------------------------------------

    def _ranked(self, node: syntax.Ranked) -> Expression:
        name = node.this.upper()
        if self.ranks is None:
            remedy = "write it in the SELECT list or in QUALIFY, or compute it in a sub-query in FROM"
            raise self._error(f"{self.clause} cannot hold {name}", node, remedy)
        self._need_window(node)
        if (frame := node.args.get("frame")) is not None:
            raise self._error(f"{name} has no frame", frame, "leave it out")
        if not node.args["keys"] and name != "ROW_NUMBER":
            raise self._error(f"{name} has no ORDER BY", node, f"write {name}() OVER (ORDER BY ..)")
        inner = replace(self, clause="OVER", sub_queries=False, ranks=None)
        partition = tuple(functions.settle(inner.bind(value)) for value in node.args["partition"])
        call = RankCall(node.this, partition, inner.sort_values(node.args["keys"]), self.context.source.excerpt(node))
        return RankRef(self.ranks.setdefault(call, len(self.ranks)), call)

    def _need_window(self, node: syntax.Ranked) -> None:
        if (named := node.args.get("named")) is not None:
            remedy = f"write WINDOW {named.name} AS (PARTITION BY .. ORDER BY ..) behind the query, or OVER (..)"
            raise self._error(f"there is no window '{named.name}'", named, remedy)

    def _over(self, node: syntax.OverCall) -> Expression:
        """An aggregate of the rows around each row, or a value of one of them."""
        written = node.this
        modified = written if isinstance(written, syntax.ModifiedCall) else None
        call = written if modified is None else modified.this
        name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
        if name in ("first", "last") and (modified is None or not modified.args.get("order")):
            name += "_value"
        if name not in (*_VALUES_OVER, *DISTRIBUTIONS, *functions.AGGREGATES):
            remedy = "with OVER there are ROW_NUMBER, RANK, NTILE, LAG, LEAD, FIRST_VALUE, NTH_VALUE and aggregates"
            raise self._error(f"{name.upper() or 'this'} with OVER is not supported", node, remedy)
        if self.ranks is None:
            remedy = "write it in the SELECT list or in QUALIFY, or compute it in a sub-query in FROM"
            raise self._error(f"{self.clause} cannot hold {name.upper()} with OVER", node, remedy)
        self._need_window(node)
        ranks = self.ranks
        inner = replace(self, clause="OVER", sub_queries=False, ranks=None)
        partition = tuple(functions.settle(inner.bind(value)) for value in node.args["partition"])
        order = inner.sort_values(node.args["keys"])

        def seen(call: AggregateCall, frame: OverFrame | None, end: Any = None, own: bool = False) -> Expression:
            """What a call says of a frame; of its `own` peers, of the rows that the order does not tell apart."""
            parts = (*partition, *(key.value for key in order)) if own else partition
            sorts = () if own or (frame is None and end is None) else order
            over = BoundOver(call, parts, sorts, frame, end, self.context.source.excerpt(node))
            return RankRef(ranks.setdefault(over, len(ranks)), over)

        frame = self._frame_of(node.args.get("frame"), order)
        if name in _VALUES_OVER:
            if modified is not None and (modified.args.get("order") or modified.args.get("condition") is not None):
                remedy = "write CASE WHEN condition THEN value END, and the order in OVER (ORDER BY ..)"
                raise self._error(f"{name.upper()} with OVER takes neither FILTER nor ORDER BY", node, remedy)
            arguments = [inner.bind(argument) for argument in call.expressions]
            return self._value_over(node, name, arguments, _Seen(frame, seen, _ignores_nulls(modified)))
        if name in DISTRIBUTIONS:
            if modified is not None or (frame is not None and node.args.get("frame") is not None):
                raise self._error(f"{name.upper()} has no frame and no FILTER", node, "leave it out")

            def rank(function: RankFunction) -> Expression:
                ranked = RankCall(function, partition, order, self.context.source.excerpt(node))
                return RankRef(ranks.setdefault(ranked, len(ranks)), ranked)

            arguments = [inner.bind(argument) for argument in call.expressions]
            with self.context.at(node):
                return distribution(
                    name, arguments, rank, lambda to_peers: seen(_COUNT, _TO_PEERS if to_peers else None)
                )
        read = inner._written(call, modified)
        in_their_order = bool(order) and not read.order and not read.distinct and name != "mode"

        def refer(call: AggregateCall) -> Expression:
            return seen(call, frame, "first" if in_their_order and call.function in _COLLECTING else None)

        with self.context.at(node):
            return functions.resolve_aggregate(name, read, refer)

    def _value_over(
        self,
        node: syntax.OverCall,
        name: str,
        arguments: list[Expression],
        over: _Seen,
    ) -> Expression:
        """LAG, LEAD, FIRST_VALUE, LAST_VALUE and NTH_VALUE."""
        if name == "nth_value":
            return self._nth_over(node, arguments, over)
        frame, seen = over.frame, over.call
        moves = name in ("lag", "lead")
        if not 1 <= len(arguments) <= (3 if moves else 1):
            usage = "(value[, rows[, default]])" if moves else "(value)"
            raise self._error(f"{name.upper()} does not take this", node, f"write {name.upper()}{usage} OVER (..)")
        value = functions.settle(arguments[0])
        call = AggregateCall("first", value, value.type)
        if over.no_nulls:
            call = replace(call, condition=functions.resolve("not", (functions.resolve("is_null", (value,)),)))
        if moves:
            count = functions.constant_number(arguments[1]) if len(arguments) > 1 else Fraction(1)
            if count is None or count.denominator != 1 or abs(count) > _MOST_PLACES:
                remedy = f"write {name.upper()}(value, 2) OVER (..)"
                raise self._error(f"{name.upper()} goes a constant number of rows", node, remedy)
            by = int(count if name == "lead" else -count)
            there = OverFrame(by, by)
            if over.no_nulls and abs(by) != 1:
                raise self._error(f"{name.upper()} with IGNORE NULLS goes one row", node, "leave the number out")
            if over.no_nulls:
                moved = seen(call, OverFrame(1, None), "first") if by > 0 else seen(call, OverFrame(None, -1), "last")
            else:
                moved = seen(call, there)
            if len(arguments) < 3:
                return moved
            if functions.common_type([value.type, arguments[2].type]) is None:
                raise self._error(f"the default of {name.upper()} is of another type", node, "cast it: CAST(0 AS type)")
            with self.context.at(node):
                default = functions.cast(arguments[2], value.type, False)
                if over.no_nulls:
                    return functions.resolve("coalesce", (moved, default))
                equal = functions.resolve("=", (seen(_COUNT, there), Literal(1, BIGINT)))
                return functions.case((equal,), (moved,), default)
        last = name == "last_value"
        end: OneOf["first", "last"] = "last" if last else "first"
        if frame is None or over.no_nulls:
            return seen(call, frame, end)
        near, far = (frame.end, frame.start) if last else (frame.start, frame.end)
        if near is None and (far is None or (far <= 0 if last else far >= 0)):
            return seen(call, None, end)
        if frame.peers and near == 0:
            return seen(call, None, end, own=True)
        if last and near is not None and near <= 0 and not frame.peers:
            return seen(call, OverFrame(near, near))
        return seen(call, frame, None if not last and not frame.peers else end)

    def _nth_over(self, node: syntax.OverCall, arguments: list[Expression], over: _Seen) -> Expression:
        """NTH_VALUE(value, n): of the array of all values of the frame that element."""
        number = functions.constant_number(arguments[1]) if len(arguments) == 2 else None
        if number is None or number.denominator != 1 or not 0 < number <= _MOST_PLACES:
            what = "NTH_VALUE takes a value and a constant number from 1 on"
            raise self._error(what, node, "write NTH_VALUE(value, 2) OVER (ORDER BY ..)")
        value = functions.settle(arguments[0])
        with self.context.at(node):
            element = functions.cast(value, part_type(value.type))
            order = (functions.OrderedBy(element),)
            call = AggregateCall("array_agg", element, pa.list_(element.type), order=order)
            if over.no_nulls:
                met = functions.resolve("not", (functions.resolve("is_null", (value,)),))
                call = replace(call, condition=met)
            listed = over.call(call, over.frame, "first")
            nth = functions.resolve("list_extract", (listed, Literal(int(number), BIGINT)))
            return functions.cast(nth, value.type)

    def _frame_of(self, node: exp.Expr | None, order: Sequence[SortValue]) -> OverFrame | None:
        """The frame that is written, or meant: with an order all rows up to the peers of the row; None: all rows."""
        if node is None:
            return OverFrame(None, 0, peers=True) if order else None
        written = [node.args[each] for each in ("start", "end")]
        peers = bool(node.args["peers"])
        if any(isinstance(bound, syntax.Distance) for bound in written):
            return self._frame_of_distances(node, written, order)
        start, end = (None if bound is None else int(bound.name) for bound in written)
        return None if (start is None and end is None) or (peers and not order) else OverFrame(start, end, peers)

    def _frame_of_distances(
        self, node: exp.Expr, written: Sequence[exp.Expr | None], order: Sequence[SortValue]
    ) -> OverFrame:
        """RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW."""
        if len(order) != 1:
            remedy = "write OVER (ORDER BY ts RANGE ..), or ROWS"
            raise self._error("RANGE with a distance takes one value in ORDER BY", node, remedy)
        (key,) = order
        by_time = key.value.type in (TIMESTAMP, TIMESTAMPTZ)
        if not by_time and not pa.types.is_integer(key.value.type):
            remedy = "order by a time or a whole number, such as CAST(a AS BIGINT), or write ROWS"
            raise self._error(f"RANGE with a distance does not go by {sql_name(key.value.type)}", node, remedy)
        start, end = (self._distance(bound, by_time) for bound in written)
        if start is not None and end is not None and start > end:
            remedy = "write RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW"
            raise self._error("the frame ends before it begins", node, remedy)
        return OverFrame(start, end, True, "time" if by_time else "number")

    def _distance(self, bound: exp.Expr | None, by_time: bool) -> int | None:
        if not isinstance(bound, syntax.Distance):
            return None if bound is None else int(bound.name)
        value = replace(self, clause="RANGE", sub_queries=False, ranks=None).bind(bound.this)
        far: int | None = None
        if by_time and isinstance(value, Interval):
            months, micros = (
                part.value if isinstance(part, Literal) else None for part in (value.months, value.micros)
            )
            far = micros if months == 0 else None
        elif not by_time and isinstance(value, Literal) and type(value.value) is int:
            far = value.value
        if far is None or not 0 <= far <= _FARTHEST:
            what, example = ("an interval of days and less", "INTERVAL '1' HOUR") if by_time else ("whole", "10")
            remedy = f"write RANGE BETWEEN {example} PRECEDING AND CURRENT ROW"
            raise self._error(f"a distance in this order is {what} and constant", bound, remedy)
        return far if bound.args["following"] else -far

    def sort_values(self, items: Iterable[exp.Expr]) -> tuple[SortValue, ...]:
        """The entries of an ORDER BY."""
        return tuple(
            SortValue(functions.settle(self.bind(item.this)), item.args["descending"], item.args["nulls_first"])
            for item in items
        )

    # --- calls -------------------------------------------------------------------------------------------------------

    def _modified(self, node: syntax.ModifiedCall) -> Expression:
        name = node.this.name.lower()
        if name not in functions.AGGREGATES:
            self._call(node.this)  # it says what is wrong with the name itself
            what, remedy = "FILTER is", "write CASE WHEN condition THEN .."
            if node.args.get("order"):
                what, remedy = "ORDER BY is", "leave it out"
            if node.args.get("nulls"):
                what, remedy = f"{node.args['nulls'].name} NULLS is", "leave it out"
            raise self._error(f"'{name}' is no aggregate, {what} for those", node, remedy)
        return self._aggregate(node.this, name, node)

    def _call(self, node: exp.Anonymous) -> Expression:
        if (instead := GROUP_WINDOWS.get(node.this.lower())) is not None:
            raise self._error(f"{node.this.upper()} over a column is not supported", node, f"write {instead}")
        name, arguments = node.name.lower(), node.expressions
        if name in self.context.catalogue.functions:
            return self._python(node, self.context.catalogue.functions[name])
        if name in functions.AGGREGATES:
            return self._aggregate(node, name)
        if name in _GROUPINGS:
            return self._grouping(node)
        if name in WALL_CLOCK | CHANCE:
            raise self._impure(node, name)
        if name == "proctime" and not arguments:
            return self._time_of_row(node)
        if name in _MOVES and len(arguments) == 2:
            return self._resolve(node, _MOVES[name], *(self.bind(argument) for argument in arguments))
        if name == "timestampadd" and len(arguments) == 3:
            return self._timestampadd(node)
        if name == "locate" and len(arguments) == 2:
            return self._resolve(node, "position", *(self.bind(each) for each in reversed(arguments)))
        if name == "date_bin" and len(arguments) > 1 and not isinstance(arguments[0], exp.Literal):
            return self._resolve(node, "time_bucket", *(self.bind(each) for each in arguments))
        if name == "datediff" and len(arguments) == 2:  # as Spark and Hive have it: the end first
            days = (Literal("day", VARCHAR), *(self.bind(each) for each in reversed(arguments)))
            return self._resolve(node, "date_diff", *days)
        if name == "timestampdiff" and len(arguments) == 3:
            return self._timestampdiff(node)
        if name == "row" and len(arguments) > 1:
            return self._tuple(node)
        if name in CALLS and name not in _OTHER_AGGREGATES and not functions.is_function(name):
            raise self._error(f"there is no function '{name}'", node, CALLS[name])
        for argument in arguments:
            if isinstance(argument, exp.Distinct):
                raise self._error(f"'{name}' is no aggregate, DISTINCT is for those", argument, "leave DISTINCT out")
        if name.upper() in RANKS:
            raise self._error(f"{name.upper()} has no OVER", node, f"write {name.upper()}() OVER (ORDER BY ..)")
        if name in _OTHER_AGGREGATES and not functions.is_function(name):
            listed = "see the list of aggregates in the documentation: COUNT, SUM, AVG, MIN, MAX, STDDEV and others"
            remedy = CALLS.get(name, listed)
            raise self._error(f"there is no aggregate '{name}'", node, remedy)
        if name == "date" and len(arguments) == 1:
            with self.context.at(node):
                return functions.cast(self.bind(arguments[0]), DATE)
        if name in ("date_part", "datepart"):
            return self._date_part(node)
        if name in _TO_UNITS and len(arguments) == 1:
            return self._resolve(node, "*", unit_interval(_TO_UNITS[name]), self.bind(arguments[0]))
        return self._resolve(node, name, *(self.bind(argument) for argument in arguments))

    def _time_of_row(self, node: exp.Anonymous) -> Expression:
        """PROCTIME(): when a row of the stream is taken, which here is its own time."""
        times = [item.time for item in self.scope.inputs if item.time is not None]
        if len(times) != 1:
            remedy = f"write {' or '.join(f'{i.alias}.{i.time.name}' for i in self.scope.inputs if i.time)}"
            if not times:
                remedy = "write it where FROM has one stream: SELECT *, PROCTIME() AS p FROM s"
            raise self._error("PROCTIME() is the time of the rows of one stream", node, remedy)
        return replace(times[0], excerpt=self.context.source.excerpt(node))

    def _timestampadd(self, node: exp.Anonymous) -> Expression:
        """TIMESTAMPADD(DAY, n, moment), as Flink has it."""
        unit, count, moment = node.expressions
        name = unit.name if isinstance(unit, exp.Column | exp.Literal) else ""
        if months_of(name) is None and unit_of(name) is None:
            raise self._error("this is no unit of time", unit, "write SECOND, MINUTE, HOUR, DAY, MONTH or YEAR")
        length = self._resolve(node, "*", unit_interval(name), self.bind(count))
        return self._resolve(node, "+", self.bind(moment), length)

    def _timestampdiff(self, node: exp.Anonymous) -> Expression:
        """TIMESTAMPDIFF(SECOND, from, to), as Flink has it: whole units, towards 0."""
        unit, *moments = node.expressions
        micros = unit_of(unit.name if isinstance(unit, exp.Column | exp.Literal) else "")
        if micros is None:
            remedy = "write SECOND, MINUTE, HOUR or DAY; date_diff('month', from, to) counts the beginnings of months"
            raise self._error("TIMESTAMPDIFF counts units of a fixed length", unit, remedy)
        between = self._resolve(node, "date_diff", Literal("microsecond", VARCHAR), *map(self.bind, moments))
        return self._resolve(node, "//", between, Literal(micros, BIGINT))

    def _python(self, node: exp.Anonymous, function: PythonFunction) -> Expression:
        for argument in node.expressions:
            if isinstance(argument, exp.Distinct):
                what = f"'{function.name}' is no aggregate, DISTINCT is for those"
                raise self._error(what, argument, "leave DISTINCT out")
        arguments = tuple(self.bind(argument) for argument in node.expressions)
        with self.context.at(node):
            return python_call(function, arguments)

    def _at_time_zone(self, node: exp.AtTimeZone) -> Expression:
        """From left to right; the parser takes the second one for a part of the first zone."""
        moment, zone = self.bind(node.this), node.args["zone"]
        while isinstance(zone, exp.AtTimeZone):
            moment, zone = self._resolve(node, "timezone", self.bind(zone.this), moment), zone.args["zone"]
        return self._resolve(node, "timezone", self.bind(zone), moment)

    def _date_part(self, node: exp.Anonymous) -> Expression:
        """EXTRACT(part FROM moment) and date_part('part', moment): a function for each part."""
        part = node.expressions[0] if len(node.expressions) == 2 else None
        name = part.name.lower() if isinstance(part, exp.Literal) and part.is_string else ""
        name = {"dayofweek": "dow", "dayofyear": "doy"}.get(name.removesuffix("s"), name.removesuffix("s"))
        if name not in _DATE_PARTS:
            raise self._error("there is no such part of a date", node, f"the parts are {', '.join(_DATE_PARTS)}")
        return self._resolve(node, name, self.bind(node.expressions[1]))

    def _aggregate(self, node: exp.Anonymous, name: str, modified: syntax.ModifiedCall | None = None) -> Expression:
        calls = self.calls
        if calls is None:
            remedy = "write it in HAVING or in the SELECT list" if self.clause != "an aggregate" else "use a sub-query"
            raise self._error(f"{self.clause} cannot hold the aggregate {name.upper()}", node, remedy)
        inner = ExpressionBinder(self.context, self.scope, "an aggregate", sub_queries=False)
        written = inner._written(node, modified)

        def refer(call: AggregateCall) -> Expression:
            call = replace(call, excerpt=self.context.source.excerpt(node))
            return AggregateRef(calls.setdefault(call, len(calls)), call)

        with self.context.at(node):
            return functions.resolve_aggregate(name, written, refer)

    def _grouping(self, node: exp.Anonymous) -> Expression:
        """Which keys a row of GROUP BY is not grouped by; only above groups."""
        if self.calls is None or not node.expressions:
            remedy = "write GROUPING(key) in the SELECT list or in HAVING of a query with GROUP BY"
            raise self._error(f"{self.clause} cannot hold {node.name.upper()} like this", node, remedy)
        inner = replace(self, calls=None, ranks=None, sub_queries=False)
        return GroupingRef(tuple(functions.settle(inner.bind(key)) for key in node.expressions))

    def _written(self, node: exp.Anonymous, modified: syntax.ModifiedCall | None) -> functions.WrittenAggregate:
        """What stands in an aggregate, bound."""
        written = node.expressions
        if not written and node.name.lower() == "count":
            written = [exp.Star()]
        parts = {} if modified is None else modified.args
        if not written and not (node.name.lower() == "mode" and parts.get("order")):
            raise self._error(f"{node.name.upper()} takes an argument", node, f"write {node.name.upper()}(column)")
        distinct = any(isinstance(each, exp.Distinct) for each in written[:1])
        arguments = [each.expressions[0] if isinstance(each, exp.Distinct) else each for each in written]
        all_rows = any(isinstance(each, exp.Star) for each in arguments[:1])
        values = () if all_rows else tuple(self.bind(each) for each in arguments)
        condition = self.condition(parts["condition"]) if parts.get("condition") is not None else None
        if _ignores_nulls(modified) and values and node.name.lower() in functions.AGGREGATES_OF_NULLS:
            not_null = functions.resolve("not", (functions.resolve("is_null", (functions.settle(values[0]),)),))
            condition = not_null if condition is None else functions.resolve("and", (condition, not_null))
        order = tuple(
            functions.OrderedBy(functions.settle(self.bind(each.this)), each.args["desc"], each.args["nulls_first"])
            for each in parts.get("order") or ()
        )
        return functions.WrittenAggregate(values, distinct, condition, order)


_HANDLERS: Final[dict[type[exp.Expr], Callable[[ExpressionBinder, Any], Expression]]] = {
    exp.Column: ExpressionBinder._column,
    exp.Dot: ExpressionBinder._dot,
    syntax.Subscript: ExpressionBinder._subscript,
    syntax.StructValue: ExpressionBinder._struct,
    exp.Literal: ExpressionBinder._literal,
    syntax.TypedLiteral: ExpressionBinder._typed_literal,
    exp.Null: lambda _, node: Literal(None, functions.NULL),
    exp.Boolean: lambda _, node: Literal(bool(node.this), BOOLEAN),
    exp.Star: ExpressionBinder._star,
    syntax.Duration: ExpressionBinder._duration,
    syntax.IntervalOf: ExpressionBinder._interval_of,
    exp.Paren: lambda binder, node: binder.bind(node.this),
    exp.And: ExpressionBinder._connected,
    exp.Or: ExpressionBinder._connected,
    exp.Not: ExpressionBinder._not,
    exp.Neg: ExpressionBinder._negate,
    exp.BitwiseNot: lambda binder, node: binder._resolve(node, "~", binder.bind(node.this)),
    exp.NullSafeNEQ: ExpressionBinder._distinct_from,
    exp.Is: ExpressionBinder._is,
    exp.Between: ExpressionBinder._between,
    exp.Like: ExpressionBinder._like,
    exp.ILike: ExpressionBinder._like,
    exp.Escape: ExpressionBinder._escape,
    exp.Case: ExpressionBinder._case,
    exp.AtTimeZone: ExpressionBinder._at_time_zone,
    exp.Cast: ExpressionBinder._cast,
    exp.TryCast: ExpressionBinder._cast,
    exp.Exists: ExpressionBinder._exists,
    exp.In: ExpressionBinder._in,
    exp.Subquery: ExpressionBinder._scalar_query,
    exp.Tuple: ExpressionBinder._tuple,
    syntax.Quantified: ExpressionBinder._quantified,
    exp.Anonymous: ExpressionBinder._call,
    syntax.Ranked: ExpressionBinder._ranked,
    syntax.OverCall: ExpressionBinder._over,
    syntax.ModifiedCall: ExpressionBinder._modified,
}
