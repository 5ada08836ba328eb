"""Scalar expressions: names become positions, operators and functions get their types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from transom.core.errors import QueryError
from transom.core.schema import BIGINT, BOOLEAN
from transom.cql import syntax
from transom.cql.context import Context
from transom.cql.grammar_table_function import GROUP_WINDOWS
from transom.cql.limits import check_expression
from transom.cql.literals import bind_constant, bind_duration, bind_type, bind_typed_literal
from transom.cql.scope import Scope
from transom.plan import functions
from transom.plan.algebra import AggregateCall, Project
from transom.plan.expression import ColumnRef, Exists, Expression, InQuery, Literal

WALL_CLOCK: Final = frozenset(
    """now today current_timestamp current_date current_time localtime localtimestamp transaction_timestamp
    get_current_timestamp get_current_time clock_timestamp statement_timestamp""".split()
)
CHANCE: Final = frozenset("random rand setseed uuid uuidv4 uuidv7 gen_random_uuid nextval currval".split())
_OTHER_AGGREGATES: Final = frozenset(
    """any_value arg_max arg_min array_agg bool_and bool_or first group_concat last list listagg max_by median min_by
    mode product quantile stddev stddev_pop stddev_samp string_agg var_pop var_samp variance rollup cube grouping_sets
    row_number rank dense_rank lag lead ntile first_value last_value nth_value""".split()
)
_DATE_PARTS: Final = "year quarter month week day dow doy hour minute second epoch".split()
_BINARY: Final[dict[type[exp.Expr], str]] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%", exp.DPipe: "||",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "is_not_distinct",
}  # fmt: skip

_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


@dataclass(frozen=True)
class AggregateRef(Expression):
    """The value of an aggregate, while the expression around it is bound; never leaves this room."""

    index: int
    call: AggregateCall

    @property
    def type(self) -> pa.DataType:
        return self.call.result_type


@dataclass
class ExpressionBinder:
    """Binds the expressions of one clause.

    `clause` names it in errors. `calls` numbers the aggregates as they come; None where there can be none. `aliases`
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

    def bind(self, node: exp.Expr) -> Expression:
        kind = type(node)
        if kind in _BINARY:
            bound = self._binary(node, _BINARY[kind])
        elif kind in _HANDLERS:
            bound = _HANDLERS[kind](self, node)
        else:
            raise self._error("this is not part of the language", node, "write it with the operators and functions")
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
        if not isinstance(node.this, exp.Identifier) or node.args.get("db") is not None:
            raise self._error("a column has at most two names", node, "write column or input.column")
        table = node.args.get("table")
        name, qualifier = node.name, table.name if table is not None else None
        found = self.scope.find(name, qualifier)
        if not found and qualifier is None and name.lower() in self.aliases:
            alias = self.aliases.pop(name.lower())  # not seen within itself
            try:
                return self.bind(alias)
            finally:
                self.aliases[name.lower()] = alias
        found = found or self.scope.find_around(name, qualifier)
        if len(found) > 1:
            choices = [c for c in self.scope.candidates(name, qualifier) if c.lower().endswith(f".{name.lower()}")]
            remedy = f"write {' or '.join(choices)}" if len(set(choices)) > 1 else "give its inputs different names"
            raise self._error(f"'{name}' is ambiguous", node, remedy)
        if not found:
            raise self._unknown(node, name, qualifier)
        self.written.append((found[0], node))
        return found[0]

    def _unknown(self, node: exp.Column, name: str, qualifier: str | None) -> QueryError:
        if qualifier is None and name.lower() in WALL_CLOCK | CHANCE:
            return self._impure(node, name)
        if qualifier is not None and not self.scope.has_input(qualifier):
            aliases = self.scope.aliases()
            remedy = f"the inputs are {', '.join(aliases)}" if aliases else "give the input an alias"
            return self._error(f"there is no input '{qualifier}' in FROM", node, remedy)
        written = name if qualifier is None else f"{qualifier}.{name}"
        return self._error(f"there is no column '{written}'", node, self.scope.remedy(name, qualifier))

    def _impure(self, node: exp.Expr, name: str) -> QueryError:
        if name.lower() in WALL_CLOCK:
            remedy = "use the time column of a stream: its rows carry their time"
            return self._error(f"functions of the wall clock are not supported, and '{name}' is one", node, remedy)
        remedy = "a query gives the same answer whenever it runs; compute such values before they come in"
        return self._error(f"functions of chance are not supported, and '{name}' is one", node, remedy)

    def _literal(self, node: exp.Literal) -> Expression:
        return bind_constant(node, self.context.source)

    def _typed_literal(self, node: syntax.TypedLiteral) -> Expression:
        return bind_typed_literal(node, self.context.source)

    def _star(self, node: exp.Expr) -> Expression:
        raise self._error("* is no value", node, "write it alone in the SELECT list, or COUNT(*)")

    def _duration(self, node: exp.Expr) -> Expression:
        raise self._error("an interval is no value", node, "add it to a moment or subtract it: ts + INTERVAL '1' HOUR")

    # --- operators ---------------------------------------------------------------------------------------------------

    def _binary(self, node: exp.Expr, function: str) -> Expression:
        left, right = node.this, node.args["expression"]
        if isinstance(node, _COMPARISONS) and isinstance(left, _COMPARISONS):
            raise self._error("comparisons cannot be chained", node, "write a < b AND b < c, or use parentheses")
        if function in ("+", "-") and isinstance(_bare(right), syntax.Duration):
            return self._moved(node, left, _bare(right), -1 if function == "-" else 1)
        if function == "+" and isinstance(_bare(left), syntax.Duration):
            return self._moved(node, right, _bare(left), 1)
        return self._resolve(node, function, self.bind(left), self.bind(right))

    def _moved(self, node: exp.Expr, moment: exp.Expr, duration: Any, sign: int) -> Expression:
        micros = bind_duration(duration, self.context.source)
        if micros >= 1 << 63:
            raise self._error("the interval is too long", duration, "write a shorter one")
        return self._resolve(node, "add_interval", self.bind(moment), Literal(sign * micros, BIGINT))

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
        else:
            remedy = "write IS NULL, IS TRUE, IS FALSE, or IS NOT DISTINCT FROM value"
            raise self._error("IS cannot be followed by this", other, remedy)
        return self._resolve(node, "not", answer) if node.args.get("negate") else answer

    def _between(self, node: exp.Between) -> Expression:
        value = self.bind(node.this)
        low = self._resolve(node, ">=", value, self.bind(node.args["low"]))
        high = self._resolve(node, "<=", value, self.bind(node.args["high"]))
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
        operand, target = self.bind(node.this), bind_type(node.args["to"], self.context.source)
        with self.context.at(node):
            return functions.cast(operand, target, isinstance(node, exp.TryCast))

    # --- sub-queries -------------------------------------------------------------------------------------------------

    def _need_sub_queries(self, node: exp.Expr) -> None:
        if not self.sub_queries:
            remedy = "write it in WHERE; to test groups, put the grouped query into FROM and test its rows"
            raise self._error(f"{self.clause} cannot hold a sub-query", node, remedy)

    def _exists(self, node: exp.Exists) -> Expression:
        self._need_sub_queries(node)
        return Exists(self.context.bind_relation(node.this, self.scope, "EXISTS"))

    def _in(self, node: exp.In) -> Expression:
        value = self.bind(node.this)
        query = node.args.get("query")
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

    def _scalar_query(self, node: exp.Expr) -> Expression:
        remedy = "join the query in FROM, or write EXISTS (..) or IN (..)"
        raise self._error("a query as a value is not supported", node, remedy)

    def _tuple(self, node: exp.Expr) -> Expression:
        raise self._error("several values in parentheses are not supported", node, "compare them one by one with AND")

    # --- calls -------------------------------------------------------------------------------------------------------

    def _call(self, node: exp.Anonymous) -> Expression:
        if (instead := GROUP_WINDOWS.get(node.this.lower())) is not None:
            raise self._error(f"{node.this.upper()} over a column is not supported", node, f"write {instead}")
        name, arguments = node.name.lower(), node.expressions
        if name in functions.AGGREGATES:
            return self._aggregate(node, name)
        if name in WALL_CLOCK | CHANCE:
            raise self._impure(node, name)
        for argument in arguments:
            if isinstance(argument, exp.Distinct):
                raise self._error(f"'{name}' is no aggregate, DISTINCT is for those", argument, "leave DISTINCT out")
        if name in _OTHER_AGGREGATES and not functions.is_function(name):
            remedy = "the aggregates are COUNT, SUM, AVG, MIN and MAX, over the windows of streams"
            raise self._error(f"there is no aggregate '{name}'", node, remedy)
        if name in ("date_part", "datepart"):
            return self._date_part(node)
        return self._resolve(node, name, *(self.bind(argument) for argument in arguments))

    def _date_part(self, node: exp.Anonymous) -> Expression:
        """EXTRACT(part FROM moment) and date_part('part', moment): a function for each part."""
        part = node.expressions[0] if len(node.expressions) == 2 else None
        name = part.name.lower() if isinstance(part, exp.Literal) and part.is_string else ""
        name = {"dayofweek": "dow", "dayofyear": "doy"}.get(name.removesuffix("s"), name.removesuffix("s"))
        if name not in _DATE_PARTS:
            raise self._error("there is no such part of a date", node, f"the parts are {', '.join(_DATE_PARTS)}")
        return self._resolve(node, name, self.bind(node.expressions[1]))

    def _aggregate(self, node: exp.Anonymous, name: str) -> Expression:
        if self.calls is None:
            remedy = "write it in HAVING or in the SELECT list" if self.clause != "an aggregate" else "use a sub-query"
            raise self._error(f"{self.clause} cannot hold the aggregate {name.upper()}", node, remedy)
        if len(node.expressions) != 1:
            raise self._error(f"{name.upper()} takes one argument", node, f"write {name.upper()}(column)")
        argument = node.expressions[0]
        distinct = isinstance(argument, exp.Distinct)
        argument = argument.expressions[0] if distinct else argument
        value = None
        if not isinstance(argument, exp.Star):
            inner = ExpressionBinder(self.context, self.scope, "an aggregate", sub_queries=False)
            value = inner.bind(argument)
        with self.context.at(node):
            call = functions.aggregate_call(name, value, distinct)
        return AggregateRef(self.calls.setdefault(call, len(self.calls)), call)


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


_HANDLERS: Final[dict[type[exp.Expr], Callable[[ExpressionBinder, Any], Expression]]] = {
    exp.Column: ExpressionBinder._column,
    exp.Literal: ExpressionBinder._literal,
    syntax.TypedLiteral: ExpressionBinder._typed_literal,
    exp.Null: lambda _, node: Literal(None, functions.NULL),
    exp.Boolean: lambda _, node: Literal(bool(node.this), BOOLEAN),
    exp.Star: ExpressionBinder._star,
    syntax.Duration: ExpressionBinder._duration,
    exp.Paren: lambda binder, node: binder.bind(node.this),
    exp.And: ExpressionBinder._connected,
    exp.Or: ExpressionBinder._connected,
    exp.Not: ExpressionBinder._not,
    exp.Neg: ExpressionBinder._negate,
    exp.NullSafeNEQ: ExpressionBinder._distinct_from,
    exp.Is: ExpressionBinder._is,
    exp.Between: ExpressionBinder._between,
    exp.Like: ExpressionBinder._like,
    exp.ILike: ExpressionBinder._like,
    exp.Escape: ExpressionBinder._escape,
    exp.Case: ExpressionBinder._case,
    exp.Cast: ExpressionBinder._cast,
    exp.TryCast: ExpressionBinder._cast,
    exp.Exists: ExpressionBinder._exists,
    exp.In: ExpressionBinder._in,
    exp.Subquery: ExpressionBinder._scalar_query,
    exp.Tuple: ExpressionBinder._tuple,
    exp.Anonymous: ExpressionBinder._call,
}
