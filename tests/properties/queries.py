"""Random queries: CQL text over a fixed set of streams and tables, one to three levels deep.

Every query binds: the generator follows the types of its columns. It also notes which windows and operators it used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

import pyarrow.compute as pc

from transom.core.schema import BIGINT
from transom.plan.python_function import PythonFunction

Item = TypeVar("Item")

STREAM_COLUMNS = (("k", "int"), ("g", "text"), ("x", "int"), ("f", "float"), ("m", "decimal"))

DECLARATIONS = """
CREATE STREAM s (ts TIMESTAMP INVISIBLE, k INTEGER, g VARCHAR, x INTEGER, f DOUBLE, m DECIMAL(6, 2),
  WATERMARK FOR ts AS ts - INTERVAL '{bound_s}' SECOND);
CREATE STREAM t (ts TIMESTAMP INVISIBLE, k INTEGER, g VARCHAR, x INTEGER, f DOUBLE, m DECIMAL(6, 2),
  WATERMARK FOR ts AS ts - INTERVAL '{bound_t}' SECOND);
CREATE STREAM u (ts TIMESTAMP INVISIBLE, k INTEGER, g VARCHAR, x INTEGER, f DOUBLE, m DECIMAL(6, 2),
  WATERMARK FOR ts AS ts);
CREATE TABLE r (ts TIMESTAMP INVISIBLE, op VARCHAR, k INTEGER, g VARCHAR,
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (changes = 'op');
CREATE TABLE p (ts TIMESTAMP INVISIBLE, k INTEGER PRIMARY KEY, g VARCHAR, WATERMARK FOR ts AS ts);
CREATE TABLE names (k INTEGER, g VARCHAR);
"""

NESTED_COLUMNS = (("a", "array"), ("b", "struct"), ("z", "zone"), ("j", "json"))
NESTED_DECLARATIONS = DECLARATIONS.replace(
    "m DECIMAL(6, 2)", "m DECIMAL(6, 2), a INTEGER[], b STRUCT(p INTEGER, q INTEGER[]), z TIMESTAMPTZ, j JSON"
)

FUNCTIONS = {"in_python": PythonFunction("in_python", (BIGINT,), BIGINT, "propagate", "1", pc.abs_checked)}


@dataclass(frozen=True)
class Column:
    name: str
    type: str


NESTED_ELEMENTS = (Column("k", "int"), Column("e", "int"))


@dataclass(frozen=True)
class Source:
    """Something that can stand in FROM: its text without an alias, and its columns."""

    text: str
    columns: tuple[Column, ...]


@dataclass
class Noted:
    """What a query is made of."""

    windows: set[str] = field(default_factory=set)
    operators: set[str] = field(default_factory=set)

    def pairs(self) -> list[tuple[str, str]]:
        return sorted((window, operator) for window in self.windows for operator in self.operators)


WINDOWS = ("range", "rows", "partition", "rows_range", "partition_range", "unbounded", "slide", "slide_rows", "range")


class Generator:
    """Makes one query.

    `joined` counts the joins around the part that is being made: their windows are wider, or rows would never meet.
    `repeats` is how often, in percent, a second input is the first one once more, and so runs once. `nested`: streams
    have arrays, structs, instants and JSON, too, and they are picked more often than others.
    """

    def __init__(self, random: Random, repeats: int = 0, nested: bool = False) -> None:
        self.random = random
        self.nested = nested
        self.stream_columns = STREAM_COLUMNS + NESTED_COLUMNS * (2 if nested else 0)
        self.repeats = repeats
        self.noted = Noted()
        self.joined = 0
        self.aliases = 0

    def pick(self, options: Sequence[Item]) -> Item:
        return self.random.choice(options)

    def chance(self, percent: int) -> bool:
        return self.random.random() * 100 < percent

    def repeated(self) -> bool:
        if not self.repeats or not self.chance(self.repeats):
            return False
        self.noted.operators.add("the same twice")
        return True

    def some(self, options: Sequence[Item], most: int) -> list[Item]:
        """One to `most` different ones."""
        return self.random.sample(options, min(self.random.randint(1, most), len(options)))

    def alias(self) -> str:
        self.aliases += 1
        return f"a{self.aliases}"

    # --- what stands in FROM -----------------------------------------------------------------------------------------

    def window(self, columns: tuple[Column, ...]) -> str:
        kind = self.pick(WINDOWS + (WINDOWS if self.joined else ()) + (() if self.joined > 1 else ("now",)))
        self.noted.windows.add(kind)
        rows = self.random.randint(1, 4) + 2 * self.joined
        seconds = self.random.randint(1, 9) + 4 * self.joined
        keys = ", ".join(column.name for column in self.keys(columns))
        return {
            "range": f"[RANGE {seconds} SECONDS]",
            "rows": f"[ROWS {rows}]",
            "partition": f"[PARTITION BY {keys} ROWS {rows}]",
            "rows_range": f"[ROWS {rows} RANGE {seconds} SECONDS]",
            "partition_range": f"[PARTITION BY {keys} ROWS {rows} RANGE {seconds} SECONDS]",
            "now": "[NOW]",
            "unbounded": "[RANGE UNBOUNDED]",
            "slide": f"[RANGE {seconds} SECONDS SLIDE {self.random.randint(1, 4)} SECONDS]",
            "slide_rows": f"[ROWS {rows} SLIDE {self.random.randint(1, 3)}]",
        }[kind]

    def source(self, depth: int) -> Source:
        """A windowed stream, a table, or a sub-query."""
        if depth > 0 and self.chance(75):
            if self.chance(25):
                inner = self.select(depth - 1)
                operator = self.pick(("istream", "dstream", "rstream"))
                self.noted.operators.add(f"{operator} windowed")
                text = f"{operator.upper()}({inner.text}) {self.window(inner.columns)}"
                return Source(text, inner.columns)
            inner = self.query(depth - 1)
            return Source(f"({inner.text})", inner.columns)
        name = self.pick(("s", "s", "s", "s", "t", "t", "t", "t", "u", "r", "p", "s", "names" if self.joined else "t"))
        if self.nested and self.chance(20) and name in ("s", "t", "u"):
            return self.unnested(name)
        if name in ("r", "p", "names"):
            self.noted.operators.add({"r": "changes table", "p": "upsert table", "names": "static table"}[name])
            return Source(name, (Column("k", "int"), Column("g", "text")))
        columns = tuple(Column(*column) for column in self.stream_columns)
        return Source(f"{name} {self.window(columns)}", columns)

    def unnested(self, name: str) -> Source:
        """A windowed stream with a row for every element of an array."""
        self.noted.operators.add("unnest")
        columns = tuple(Column(*column) for column in self.stream_columns)
        array = self.pick(("a", "b.q", "[k, x, NULL]"))
        if self.chance(20):
            selected = f"(SELECT k, unnest({array}) AS e, a FROM {name} {self.window(columns)})"
            return Source(selected, (*NESTED_ELEMENTS, Column("a", "array")))
        ordered = self.chance(30)
        elements = f"UNNEST({array}) {'WITH ORDINALITY AS w(e, n)' if ordered else 'AS w(e)'}"
        join = self.pick((", {}", " CROSS JOIN {}", " LEFT JOIN {} ON TRUE")).format(elements)
        if ordered:
            text = f"(SELECT k, e, a, n FROM {name} {self.window(columns)}{join})"
            return Source(text, (*NESTED_ELEMENTS, Column("a", "array"), Column("n", "int")))
        return Source(
            f"(SELECT k, e, a FROM {name} {self.window(columns)}{join})", (*NESTED_ELEMENTS, Column("a", "array"))
        )

    def keys(self, columns: tuple[Column, ...]) -> list[Column]:
        return self.some(columns, 2)

    # --- queries -----------------------------------------------------------------------------------------------------

    def query(self, depth: int) -> Source:
        kinds: tuple[Callable[[int], Source], ...] = (
            self.select,
            self.join,
            self.outer_join,
            self.sub_query,
            self.group,
            self.aggregate,
            self.distinct,
            self.set_operation,
            self.top_n,
        )
        made: Source = self.pick(kinds)(depth)
        return made

    def select(self, depth: int) -> Source:
        self.noted.operators.add("select")
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        items, out = self.items(columns)
        return Source(f"SELECT {items} FROM {source.text} AS {alias}{self.where(columns, 50)}", out)

    def join(self, depth: int, inputs: int = 2) -> Source:
        self.noted.operators.add(f"join of {inputs}")
        parts: list[str] = []
        columns: list[Column] = []
        conditions: list[str] = []
        self.joined += inputs - 1
        for i in range(inputs):
            if i == 0 or not self.repeated():
                source = self.source(depth if i == 0 else max(depth - 1, 0))
            alias = self.alias()
            of_source = self.qualified(source, alias)
            parts.append(f"{source.text} AS {alias}")
            if i:
                conditions += self.equalities(columns, of_source)
            columns += of_source
        self.joined -= inputs - 1
        if self.chance(20):
            conditions.append(self.predicate(columns, 1))
            self.noted.operators.add("theta")
        if not conditions:
            self.noted.operators.add("cross join")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        items, out = self.items(columns)
        return Source(f"SELECT {items} FROM {', '.join(parts)}{where}", out)

    def outer_join(self, depth: int) -> Source:
        kind = self.pick(("LEFT", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"))
        self.noted.operators.add(f"{kind.lower()} join")
        self.joined += 1
        first = self.source(depth)
        second = first if self.repeated() else self.source(max(depth - 1, 0))
        self.joined -= 1
        aliases = self.alias(), self.alias()
        left, right = self.qualified(first, aliases[0]), self.qualified(second, aliases[1])
        if self.chance(20):
            named = self.by_names(kind, (first, second), aliases)
            if named is not None:
                return named
        conditions = self.equalities(left, right)
        if not conditions or self.chance(25):
            conditions.append(self.predicate(left + right, 1))
            self.noted.operators.add("theta")
        there = left if kind in ("SEMI", "ANTI") else left + right
        where = self.where(there, 30)
        items, out = self.items(there)
        joined = f"{first.text} AS {aliases[0]} {kind} JOIN {second.text} AS {aliases[1]} ON {' AND '.join(conditions)}"
        return Source(f"SELECT {items} FROM {joined}{where}", out)

    def by_names(self, kind: str, sides: tuple[Source, Source], aliases: tuple[str, str]) -> Source | None:
        """An outer, semi or anti join by columns of the same name, if they have any: USING some of them, or NATURAL."""
        types = [{column.name: column.type for column in side.columns} for side in sides]
        common = [name for name in types[0] if name in types[1]]
        alike = [name for name in common if types[0][name] == types[1][name]]
        natural = self.chance(40) and common == alike and "ts" not in common  # which is invisible where it is declared
        if not alike:
            return None
        using = common if natural else self.some(alike, 2)
        self.noted.operators.add("natural" if natural else "using")
        merged = [Column(name, types[0][name]) for name in using]
        rest = [
            [Column(f"{alias}.{name}", type_) for name, type_ in typed.items() if name not in using]
            for typed, alias in zip(types, aliases, strict=True)
        ]
        there = [*merged, *rest[0], *([] if kind in ("SEMI", "ANTI") else rest[1])]
        items, out = self.items(there)
        join = f"NATURAL {kind} JOIN" if natural else f"{kind} JOIN"
        on = "" if natural else f" USING ({', '.join(using)})"
        joined = f"{sides[0].text} AS {aliases[0]} {join} {sides[1].text} AS {aliases[1]}{on}"
        return Source(f"SELECT {items} FROM {joined}{self.where(there, 30)}", out)

    def timed_join(self, depth: int) -> Source:
        """Streams without windows, whose times are bound to each other, or only to one side."""
        self.noted.operators.add("times bound")
        names = [self.pick(("s", "t", "u")) for _ in range(self.pick((2, 2, 3)))]
        aliases = [self.alias() for _ in names]
        stream = tuple(Column(*column) for column in STREAM_COLUMNS)
        columns: list[Column] = []
        conditions: list[str] = []
        for i, alias in enumerate(aliases):
            of_stream = self.qualified(Source("", stream), alias)
            if i:
                before = self.pick(aliases[:i])
                low, high = self.random.randint(0, 4), self.random.randint(2, 6)
                sign = self.pick(("-", "-", "+"))
                bounds = (
                    f"{alias}.ts >= {before}.ts {sign} INTERVAL '{low}' SECOND",
                    f"{alias}.ts <{self.pick(('=', ''))} {before}.ts + INTERVAL '{high}' SECOND",
                )
                conditions += bounds if self.chance(75) else [self.pick((*bounds, f"{before}.ts = {alias}.ts"))]
                conditions += self.equalities(columns, of_stream) if self.chance(60) else []
            columns += of_stream
        if len(names) == 2 and self.chance(50):
            made = self.timed_partners(names, aliases, columns, " AND ".join(conditions))
            if not self.chance(20):
                return made
            grouped = f"SELECT c0, COUNT(*) AS c1 FROM ({made.text}) GROUP BY c0"
            return Source(grouped, (made.columns[0], Column("c1", "int")))
        items, out = self.items(columns)
        joined = ", ".join(f"{name} AS {alias}" for name, alias in zip(names, aliases, strict=True))
        distinct = "DISTINCT " if self.chance(20) else ""
        return Source(f"SELECT {distinct}{items} FROM {joined} WHERE {' AND '.join(conditions)}", out)

    def timed_partners(self, names: list[str], aliases: list[str], columns: list[Column], condition: str) -> Source:
        """The same, of a join that knows which rows have a partner."""
        kind = self.pick(("LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "EXISTS", "NOT EXISTS"))
        self.noted.operators.add(f"times bound {kind.lower()}")
        first, second = (f"{name} AS {alias}" for name, alias in zip(names, aliases, strict=True))
        left = columns[: len(STREAM_COLUMNS)]
        there = columns if kind in ("LEFT", "RIGHT", "FULL") else left
        items, out = self.items(there)
        if kind.endswith("EXISTS"):
            return Source(f"SELECT {items} FROM {first} WHERE {kind} (SELECT * FROM {second} WHERE {condition})", out)
        where = self.where(there, 20)
        distinct = "DISTINCT " if self.chance(15) else ""
        return Source(f"SELECT {distinct}{items} FROM {first} {kind} JOIN {second} ON {condition}{where}", out)

    def sub_query(self, depth: int) -> Source:
        self.joined += 1
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        asked = self.asked(columns, depth)
        if self.chance(30):
            asked = self.pick(
                (
                    f"{asked} AND {self.predicate(columns, 1)}",
                    f"({asked} OR {self.predicate(columns, 0)})",
                    f"{asked} AND {self.asked(columns, 0)}",
                    f"CASE WHEN {self.predicate(columns, 0)} THEN {asked} ELSE {self.asked(columns, 0)} END",
                    f"({asked}) IS NULL",
                )
            )
        self.joined -= 1
        items, out = self.items(columns)
        if self.chance(15):
            value = self.value_asked(columns)
            self.noted.operators.add("query as a value selected")
            items, out = f"{items}, {value[0]} AS c{len(out)}", (*out, Column(f"c{len(out)}", value[1]))
            return Source(f"SELECT {items} FROM {source.text} AS {alias}", out)
        if self.chance(15):
            self.noted.operators.add("sub-query selected")
            items, out = f"{items}, {asked} AS c{len(out)}", (*out, Column(f"c{len(out)}", "bool"))
            return Source(f"SELECT {items} FROM {source.text} AS {alias}", out)
        return Source(f"SELECT {items} FROM {source.text} AS {alias} WHERE {asked}", out)

    def value_asked(self, around: list[Column]) -> tuple[str, str]:
        """A query with one row at most: an aggregate, the first row of an order, a row of a table by its key."""
        numbers = [column.name for column in around if column.type == "int"]
        if numbers and self.chance(30):
            alias = self.alias()
            self.noted.operators.add("row of a table")
            return f"(SELECT {alias}.g FROM p AS {alias} WHERE {alias}.k = {self.pick(numbers)})", "text"
        self.joined += 1
        source, alias = self.source(0), self.alias()
        self.joined -= 1
        of_source = self.qualified(source, alias)
        conditions = self.equalities(around, of_source)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        column = self.pick(of_source)
        if self.chance(30):
            order = self.sorted_by(self.pick(of_source).name)
            return f"(SELECT {column.name} FROM {source.text} AS {alias}{where} ORDER BY {order} LIMIT 1)", column.type
        call, type_ = self.pick(self.calls(of_source))
        return f"(SELECT {call} FROM {source.text} AS {alias}{where})", type_

    def lateral(self, depth: int) -> Source:
        """Rows beside what a query has for each of them; perhaps one more beside what is there then."""
        self.joined += 1
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        text = f"{source.text} AS {alias}"
        for _ in range(self.pick((1, 1, 1, 2))):
            inner, name = self.for_each(columns), self.alias()
            mine = self.qualified(inner, name)
            kind = self.pick((", ", " CROSS JOIN ", " JOIN ", " LEFT JOIN ", " LEFT JOIN "))
            self.noted.operators.add("left lateral" if "LEFT" in kind else "lateral")
            text += f"{kind}LATERAL ({inner.text}) AS {name}"
            if kind[-5:] == "JOIN " and "CROSS" not in kind:
                text += f" ON {'TRUE' if self.chance(60) else self.predicate(columns + mine, 1)}"
            columns += mine
        self.joined -= 1
        where = self.where(columns, 30)
        items, out = self.items(columns)
        return Source(f"SELECT {items} FROM {text}{where}", out)

    def group_sub_query(self, depth: int) -> Source:
        """Groups that sub-queries are asked about, in HAVING or in the SELECT list."""
        self.noted.operators.add("sub-query of groups")
        self.joined += 1
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        keys = self.keys(tuple(columns))
        call, type_ = self.pick(self.calls(columns))
        items = [*(key.name for key in keys), call]
        types = [*(key.type for key in keys), type_]
        having = f" HAVING {self.asked(keys, 0)}"
        if self.chance(30):
            value, kind = self.value_asked(keys)
            having = having if self.chance(30) else ""
            items, types = [*items, value], [*types, kind]
        self.joined -= 1
        out = tuple(Column(f"c{i}", each) for i, each in enumerate(types))
        shown = ", ".join(f"{item} AS c{i}" for i, item in enumerate(items))
        by = ", ".join(key.name for key in keys)
        where = self.where(columns, 25)
        return Source(f"SELECT {shown} FROM {source.text} AS {alias}{where} GROUP BY {by}{having}", out)

    def for_each(self, around: list[Column]) -> Source:
        """A query that reads the row around it: rows, groups, an aggregate, the first rows of an order."""
        source, alias = self.source(0), self.alias()
        mine = self.qualified(source, alias)
        conditions = self.equalities(around, mine)
        if self.chance(25):
            conditions.append(self.predicate(around + mine, 1))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        body = f"FROM {source.text} AS {alias}{where}"
        kind = self.pick(("rows", "rows", "distinct", "aggregate", "aggregate", "group", "limit"))
        if kind in ("aggregate", "group"):
            calls = self.calls(mine)
            key = self.pick(mine)
            items = [f"{call} AS c{i}" for i, (call, _) in enumerate(calls)]
            out = [Column(f"c{i}", type_) for i, (_, type_) in enumerate(calls)]
            if kind == "aggregate":
                return Source(f"SELECT {', '.join(items)} {body}", tuple(out))
            items.append(f"{key.name} AS c{len(out)}")
            return Source(
                f"SELECT {', '.join(items)} {body} GROUP BY {key.name}", (*out, Column(f"c{len(out)}", key.type))
            )
        values, out_ = self.items([*mine, self.pick(around)])
        if kind == "limit":
            order = ", ".join(self.sorted_by(column.name) for column in self.some(mine, 2))
            return Source(f"SELECT {values} {body} ORDER BY {order}{self.bounds()}", out_)
        return Source(f"SELECT {'DISTINCT ' * (kind == 'distinct')}{values} {body}", out_)

    def asked_of_elements(self, array: str, around: list[Column]) -> str:
        """Of the elements of an array of the row around."""
        self.noted.operators.add("elements of the row around")
        alias = self.alias()
        element = Column(f"{alias}.e", "int")
        conditions = [self.predicate([element, *around], 1)] if self.chance(60) else []
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        rows = f"FROM UNNEST({array}) AS {alias}(e){where}"
        return self.pick(
            (
                f"EXISTS (SELECT 1 {rows})",
                f"NOT EXISTS (SELECT 1 {rows})",
                f"2 {self.pick(('', 'NOT '))}IN (SELECT {element.name} {rows})",
                f"(SELECT SUM({element.name}) {rows}) > 2",
            )
        )

    def asked(self, around: list[Column], depth: int) -> str:
        """EXISTS or IN of a sub-query that knows the row around it in one way or another, or not at all."""
        arrays = [column.name for column in around if column.type == "array"]
        if arrays and self.chance(30):
            return self.asked_of_elements(self.pick(arrays), around)
        source, alias = self.source(max(depth - 1, 0)), self.alias()
        inner = self.qualified(source, alias)
        negated = "NOT " if self.chance(50) else ""
        fitting = [(a, b) for a in around for b in inner if a.type == b.type]
        likely = [(a, b) for a, b in fitting if a.type in ("int", "text")] or fitting
        conditions = self.equalities(around, inner) if self.chance(60) else []
        if self.chance(25):
            conditions.append(self.predicate(inner, 1))
        if fitting and self.chance(25):
            a, b = self.pick(likely)
            conditions.append(f"{a.name} {self.pick(('<', '<>', '>='))} {b.name}")
            self.noted.operators.add("correlated by an inequality")
        if depth and self.chance(15):
            conditions.append(self.asked(around + inner, 0))
            self.noted.operators.add("sub-query in a sub-query")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        if likely and self.chance(50):
            self.noted.operators.add(f"{negated.lower()}in sub-query")
            a, b = self.pick(likely)
            if self.chance(20):
                self.noted.operators.add("any and all")
                compared, which = self.pick(("<", "<=", ">", ">=", "=", "<>")), self.pick(("ANY", "ALL"))
                return f"{a.name} {compared} {which} (SELECT {b.name} FROM {source.text} AS {alias}{where})"
            if self.chance(20):
                self.noted.operators.add(f"{negated.lower()}in rows")
                c, d = self.pick(likely)
                rows = f"SELECT {b.name}, {d.name} FROM {source.text} AS {alias}{where}"
                return f"({a.name}, {c.name}) {negated}IN ({rows})"
            return f"{a.name} {negated}IN (SELECT {b.name} FROM {source.text} AS {alias}{where})"
        if likely and self.chance(30):
            self.noted.operators.add("query as a value")
            a, b = self.pick(likely)
            call = self.pick((f"MIN({b.name})", f"MAX({b.name})"))
            compared = self.pick(("<", "=", ">="))
            if self.chance(25):
                order = self.pick(("", " DESC"))
                where += f" ORDER BY {b.name}{order} LIMIT 1"
                call = b.name
            return f"{a.name} {compared} (SELECT {call} FROM {source.text} AS {alias}{where})"
        self.noted.operators.add(f"{negated.lower()}exists")
        key = self.pick(inner).name
        tail = self.pick(("", "", "", f" GROUP BY {key} HAVING COUNT(*) > 1", " HAVING COUNT(*) <> 1"))
        what = {"": "*", " H": "COUNT(*)"}.get(tail[:2], key)
        return f"{negated}EXISTS (SELECT {what} FROM {source.text} AS {alias}{where}{tail})"

    def equalities(self, left: list[Column], right: list[Column]) -> list[str]:
        """Equalities that bind the right input to those before it; now and then none."""
        if self.chance(10):
            return []
        pairs = [(a, b) for a in left for b in right if a.type == b.type]
        named = [(a, b) for a, b in pairs if a.name.split(".")[1] == b.name.split(".")[1]]
        if not pairs:
            return []
        likely = [(a, b) for a, b in named if a.type in ("int", "text")] or named or pairs
        most = 2 if self.chance(25) else 1
        chosen = self.some(likely, most)
        return [f"{a.name} = {b.name}" for a, b in chosen]

    def group(self, depth: int) -> Source:
        self.noted.operators.add("group by")
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        keys = self.keys(tuple(columns))
        items = [f"{key.name} AS c{i}" for i, key in enumerate(keys)]
        out = [Column(f"c{i}", key.type) for i, key in enumerate(keys)]
        for call, type_ in self.calls(columns):
            items.append(f"{call} AS c{len(items)}")
            out.append(Column(f"c{len(out)}", type_))
        by = ", ".join(key.name for key in keys)
        having = ""
        if self.chance(30):
            self.noted.operators.add("having")
            having = self.pick(
                (" HAVING COUNT(*) > 1", f" HAVING MAX({keys[0].name}) IS NOT NULL", " HAVING COUNT(*) < 3")
            )
        where = self.where(columns, 25)
        return Source(
            f"SELECT {', '.join(items)} FROM {source.text} AS {alias}{where} GROUP BY {by}{having}", tuple(out)
        )

    def aggregate(self, depth: int) -> Source:
        self.noted.operators.add("global aggregate")
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        calls = self.calls(columns)
        items = ", ".join(f"{call} AS c{i}" for i, (call, _) in enumerate(calls))
        out = tuple(Column(f"c{i}", type_) for i, (_, type_) in enumerate(calls))
        return Source(f"SELECT {items} FROM {source.text} AS {alias}{self.where(columns, 30)}", out)

    def distinct(self, depth: int) -> Source:
        self.noted.operators.add("distinct")
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        items, out = self.items(columns, most=2)
        return Source(f"SELECT DISTINCT {items} FROM {source.text} AS {alias}{self.where(columns, 30)}", out)

    def set_operation(self, depth: int) -> Source:
        kind = self.pick(("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"))
        self.noted.operators.add(kind.lower())
        first = self.source(max(depth - 1, 0)), self.alias()
        second = first[0] if self.repeated() else self.source(max(depth - 1, 0))
        sides = [first, (second, self.alias())]
        left, right = (self.qualified(source, alias) for source, alias in sides)
        pairs = [(a, b) for a in left for b in right if a.type == b.type]
        if not pairs:
            return self.select(depth)
        chosen = self.some(pairs, 2)
        texts = []
        for side, (source, alias) in enumerate(sides):
            items = ", ".join(f"{pair[side].name} AS c{i}" for i, pair in enumerate(chosen))
            columns = left if side == 0 else right
            texts.append(f"SELECT {items} FROM {source.text} AS {alias}{self.where(columns, 20)}")
        out = tuple(Column(f"c{i}", a.type) for i, (a, _) in enumerate(chosen))
        return Source(f"{texts[0]} {kind} {texts[1]}", out)

    def top_n(self, depth: int) -> Source:
        kinds = (self.limit, self.limit, self.limited_groups, self.ranked, self.ranked, self.ranked, self.distinct_on)
        made: Source = self.pick(kinds)(depth)
        return made

    def limit(self, depth: int) -> Source:
        self.noted.operators.add("limit")
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        items, out = self.items(columns)
        distinct = self.chance(15)
        order = ", ".join(self.sorted_by(column.name) for column in self.some(out if distinct else columns, 2))
        select = f"SELECT {'DISTINCT ' if distinct else ''}{items}"
        text = f"{select} FROM {source.text} AS {alias}{self.where(columns, 30)} ORDER BY {order}{self.bounds()}"
        return Source(f"(SELECT * FROM ({text}))", out)

    def limited_groups(self, depth: int) -> Source:
        self.noted.operators.add("limit of groups")
        grouped = self.group(depth)
        order = ", ".join(self.sorted_by(column.name) for column in self.some(grouped.columns, 2))
        return Source(f"(SELECT * FROM ({grouped.text} ORDER BY {order}{self.bounds()}))", grouped.columns)

    def distinct_on(self, depth: int) -> Source:
        self.noted.operators.add("distinct on")
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        items, out = self.items(columns)
        keys = ", ".join(column.name for column in self.keys(tuple(columns)))
        order = f" ORDER BY {self.sorted_by(self.pick(columns).name)}" if self.chance(80) else ""
        select = f"SELECT DISTINCT ON ({keys}) {items}"
        return Source(f"(SELECT * FROM ({select} FROM {source.text} AS {alias}{order}))", out)

    def ranked(self, depth: int) -> Source:
        """Numbers within partitions, compared around the query, in QUALIFY, or not at all."""
        function = self.pick(("ROW_NUMBER", "ROW_NUMBER", "RANK", "DENSE_RANK"))
        self.noted.operators.add(function.lower())
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        items, out = self.items(columns, most=3)
        over = f"PARTITION BY {', '.join(column.name for column in self.keys(tuple(columns)))} " * self.chance(70)
        over += f"ORDER BY {', '.join(self.sorted_by(column.name) for column in self.some(columns, 2))}"
        body = f"FROM {source.text} AS {alias}{self.where(columns, 30)}"
        n = self.random.randint(1, 3)
        asked = self.pick(
            (f"rn <= {n}", f"rn < {n + 1}", "rn = 1", f"rn BETWEEN 2 AND {n + 1}", f"{n} >= rn", "rn > 1")
        )
        if self.chance(25):
            asked += f" AND {self.predicate(list(out), 0)}"
        shown = [*(column.name for column in out), *(["rn"] if self.chance(50) else [])]
        types = {**{column.name: column.type for column in out}, "rn": "int"}
        ranks = f"{function}() OVER ({over}) AS rn"
        if self.chance(15):
            ranks += (
                f", {self.pick(('RANK', 'ROW_NUMBER'))}() OVER (ORDER BY {self.sorted_by(columns[0].name)}) AS also"
            )
            shown.append("also")
            types["also"] = "int"
        named = tuple(Column(name, types[name]) for name in shown)
        if self.chance(30):
            self.noted.operators.add("qualify")
            inner = f"SELECT {items}, {ranks} {body} QUALIFY rn <= {n}"
            return Source(f"(SELECT {', '.join(shown)} FROM ({inner}))", named)
        where = f" WHERE {asked}" if self.chance(90) else ""
        return Source(f"(SELECT {', '.join(shown)} FROM (SELECT {items}, {ranks} {body}){where})", named)

    def over(self, depth: int) -> Source:
        """Aggregates and values of the rows around each row, within partitions, orders and frames."""
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        items, out = self.items(columns, most=3)
        made = []
        for i in range(self.random.randint(1, 2)):
            over = f"PARTITION BY {', '.join(column.name for column in self.keys(tuple(columns)))}" * self.chance(70)
            ordered = self.chance(75)
            if ordered:
                over += f" ORDER BY {', '.join(self.sorted_by(column.name) for column in self.some(columns, 2))}"
            framed = ordered and self.chance(60)
            if framed:
                over += " " + self.frame()
            call, type_ = self.seen_over(columns, framed)
            self.noted.operators.add(f"{call.split('(')[0].lower()} over")
            made.append((f"{call} OVER ({over}) AS o{i}", Column(f"o{i}", type_)))
        body = f"FROM {source.text} AS {alias}{self.where(columns, 30)}"
        text = f"SELECT {items}, {', '.join(call for call, _ in made)} {body}"
        return Source(f"(SELECT * FROM ({text}))", (*out, *(column for _, column in made)))

    def seen_over(self, columns: list[Column], framed: bool) -> tuple[str, str]:
        """What is asked of the rows around a row, and its type."""
        if self.chance(50):
            call, type_ = self.pick(self.calls(columns))
            filtered = "FILTER" not in call and self.chance(20)
            return call + f" FILTER (WHERE {self.predicate(columns, 0)})" * filtered, type_
        if not framed and self.chance(20):
            tiles = self.random.randint(1, 4)
            return self.pick(((f"NTILE({tiles})", "int"), ("PERCENT_RANK()", "float"), ("CUME_DIST()", "float")))
        value = self.pick(columns)
        if value.type in ("int", "text") and self.chance(15):
            return self.pick(((f"STRING_AGG({value.name}, '-')", "text"), (f"ARRAY_AGG({value.name})", "other")))
        call = self.pick(
            (
                f"LAG({value.name})",
                f"LEAD({value.name}, {self.random.randint(0, 2)})",
                f"LAG({value.name}, 1, NULL)",
                f"LEAD({value.name} IGNORE NULLS)",
                f"LAG({value.name}, 1) IGNORE NULLS",
                *(f"{end}_VALUE({value.name}{nulls})" for end in ("FIRST", "LAST") for nulls in ("", " IGNORE NULLS")),
            )
        )
        return call, value.type

    def frame(self) -> str:
        if self.chance(30):
            return self.pick(
                (
                    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
                    "GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                    "RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
                    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
                )
            )
        first, last = sorted(self.random.randint(-2, 2) for _ in range(2))
        bounds = [
            "CURRENT ROW" if at == 0 else f"{abs(at)} {'PRECEDING' if at < 0 else 'FOLLOWING'}" for at in (first, last)
        ]
        if self.chance(30):
            bounds[0] = "UNBOUNDED PRECEDING"
        if self.chance(30):
            bounds[1] = "UNBOUNDED FOLLOWING"
        return f"{self.pick(('ROWS', 'ROWS', 'GROUPS'))} BETWEEN {' AND '.join(bounds)}"

    # --- pieces ------------------------------------------------------------------------------------------------------

    def qualified(self, source: Source, alias: str) -> list[Column]:
        return [Column(f"{alias}.{column.name}", column.type) for column in source.columns]

    def items(self, columns: list[Column], most: int = 4) -> tuple[str, tuple[Column, ...]]:
        count = self.random.randint(1, most)
        made = [self.value(columns) for _ in range(count)]
        text = ", ".join(f"{value} AS c{i}" for i, (value, _) in enumerate(made))
        return text, tuple(Column(f"c{i}", type_) for i, (_, type_) in enumerate(made))

    def value(self, columns: list[Column]) -> tuple[str, str]:
        column = self.pick(columns)
        name, type_ = column.name, column.type
        if self.chance(60):
            return name, type_
        if type_ == "array":
            return self.pick(
                (
                    (f"{name}[{self.pick((1, 2, -1))}]", "int"),
                    (f"len({name})", "int"),
                    (f"list_position({name}, 1)", "int"),
                    (f"[{name}[2], len({name})::INTEGER]", "array"),
                    (f"COALESCE({name}, [7])", "array"),
                )
            )
        if type_ == "struct":
            return self.pick(
                (
                    (f"{name}.p", "int"),
                    (f"{name}['q']", "array"),
                    (f"{{'p': len({name}.q)::INTEGER, 'q': {name}.q}}", "struct"),
                    (f"CASE WHEN {name}.p = 1 THEN {name} END", "struct"),
                )
            )
        if type_ == "zone":
            return self.pick(
                (
                    (f"({name} AT TIME ZONE 'Europe/Berlin') AT TIME ZONE 'Asia/Tokyo'", "zone"),
                    (f"hour({name} AT TIME ZONE 'Asia/Tokyo')", "int"),
                    (f"{name} + INTERVAL '1' MONTH", "zone"),
                    (f"{name} - 2 * INTERVAL '1 month 3 hours'", "zone"),
                    (f"{name} + (hour({name}) * INTERVAL '1' DAY)", "zone"),
                    (f"epoch({name} - TIMESTAMPTZ '2024-05-01 00:00:00+00')", "float"),
                    (f"CAST({name} AT TIME ZONE 'UTC' AS DATE) + INTERVAL '1' YEAR IS NULL", "bool"),
                    (f"date_trunc('day', {name})", "zone"),
                    (f"CAST({name} AS VARCHAR)", "text"),
                    (f"{name} - TIMESTAMPTZ '2024-05-01 00:00:00+00'", "interval"),
                    (f"TIMESTAMPTZ '2024-05-01 09:00:00+00' - {name}", "interval"),
                )
            )
        if type_ == "interval":
            return self.pick(
                (
                    (f"{name} * 2", "interval"),
                    (f"-{name}", "interval"),
                    (f"COALESCE({name}, INTERVAL '9' HOUR)", "interval"),
                    (f"epoch({name})", "float"),
                    (f"TIMESTAMPTZ '2024-05-01 00:00:00+00' + {name}", "zone"),
                )
            )
        if type_ == "json":
            return self.pick(
                (
                    (f"{name} -> '$.a'", "json"),
                    (f"{name} ->> 'a'", "text"),
                    (f"json_array_length({name})", "int"),
                    (f"TRY_CAST({name} -> '$.a' AS INTEGER)", "int"),
                    (f"COALESCE({name}, '[0]')", "json"),
                )
            )
        if type_ == "int":
            return self.pick(
                (f"{name} + 1", f"{name} % 2", f"-{name}", f"COALESCE({name}, 7)", f"in_python({name})")
            ), "int"
        if type_ == "text":
            return self.pick((f"UPPER({name})", f"{name} || 'x'", f"COALESCE({name}, 'none')")), "text"
        if type_ == "float":
            return self.pick((f"{name} * 2", f"1 / {name}", f"-{name}")), "float"
        return f"CASE WHEN {name} IS NULL THEN 0 ELSE 1 END", "int"

    def sorted_by(self, value: str) -> str:
        return (
            value
            + self.pick(("", "", " DESC", " DESC", " ASC"))
            + self.pick(("", "", "", " NULLS FIRST", " NULLS LAST"))
        )

    def bounds(self) -> str:
        return f" LIMIT {self.random.randint(1, 4)}" + (
            f" OFFSET {self.random.randint(1, 2)}" if self.chance(30) else ""
        )

    def where(self, columns: list[Column], percent: int) -> str:
        return f" WHERE {self.predicate(columns, 1)}" if self.chance(percent) else ""

    def predicate(self, columns: list[Column], depth: int) -> str:
        if depth and self.chance(30):
            a, b = self.predicate(columns, depth - 1), self.predicate(columns, depth - 1)
            return self.pick((f"({a} AND {b})", f"({a} OR {b})", f"NOT ({a})"))
        column = self.pick(columns)
        name = column.name
        if self.chance(20):
            return self.pick((f"{name} IS NULL", f"{name} IS NOT NULL"))
        if column.type == "text":
            return self.pick((f"{name} = 'a'", f"{name} LIKE '%b%'", f"{name} IN ('a', '')", f"{name} <> 'a'"))
        if column.type == "bool":
            return name
        if column.type == "array":
            compared = self.pick(("<", "=", "<>", ">="))
            return self.pick((f"list_contains({name}, 1)", f"{name} {compared} [1, NULL]", f"len({name}) > 1"))
        if column.type == "struct":
            return self.pick((f"{name}.p > 0", f"{name} <> {{'p': 1, 'q': [1]}}", f"{name} < {{'p': 2, 'q': NULL}}"))
        if column.type == "zone":
            since = f"{name} - TIMESTAMPTZ '2024-05-01 12:00:00+02'"
            return self.pick(
                (f"{name} > TIMESTAMPTZ '2024-05-01 12:00:00+02'", f"hour({name}) < 9", f"{since} > INTERVAL '1' MONTH")
            )
        if column.type == "interval":
            return self.pick(
                (f"{name} > INTERVAL '9' HOUR", f"{name} <= - INTERVAL '1' DAY", f"{name} + {name} = {name}")
            )
        if column.type == "json":
            return self.pick((f"{name} ->> '$.a' = '1'", f"{name} <> '[1]'", f"json_type({name}) = 'OBJECT'"))
        if column.type == "float" and self.chance(25):
            return f"1 / {name} > 0"  # of both zeros it is true of one
        other = [c.name for c in columns if c.type == column.type and c.name != name]
        right = self.pick([*other[:2], "1", "2"])
        return f"{name} {self.pick(('<', '<=', '>', '>=', '=', '<>'))} {right}"

    def calls(self, columns: list[Column]) -> list[tuple[str, str]]:
        made = []
        for _ in range(self.random.randint(1, 3)):
            column = self.pick(columns)
            options = [("COUNT(*)", "int"), (f"COUNT({column.name})", "int"), (f"COUNT(DISTINCT {column.name})", "int")]
            options += [(f"MIN({column.name})", column.type), (f"MAX({column.name})", column.type)]
            if column.type in ("int", "float", "decimal"):
                summed = "float" if column.type == "float" else "decimal"
                options += [
                    (f"SUM({column.name})", summed),
                    (f"AVG({column.name})", "float"),
                    (f"SUM(DISTINCT {column.name})", summed),
                ]
            if column.type == "interval":
                options += [(f"SUM({column.name})", "interval"), (f"SUM(DISTINCT {column.name})", "interval")]
            if self.nested and column.type == "int":
                way = self.pick(("", f" ORDER BY {self.pick(columns).name} DESC"))
                options += 2 * [(f"ARRAY_AGG({column.name}{way})", "array"), (f"LIST(DISTINCT {column.name})", "array")]
            call, type_ = self.pick(options)
            self.noted.operators.add(call.split("(")[0].lower() + (" distinct" if "DISTINCT" in call else ""))
            made.append((call, type_))
        return made


FAMILIES: tuple[str, ...] = (
    "select",
    "join",
    "join3",
    "outer_join",
    "sub_query",
    "timed_join",
    "group",
    "aggregate",
    "distinct",
    "set_operation",
    "top_n",
    "over",
    "any",
    "nested",
)


def query_of(generator: Generator, family: str) -> Source:
    depth = generator.random.randint(0, 2)
    if family == "join3":
        return generator.join(min(depth, 1), inputs=3)
    if family == "any":
        return generator.query(2)
    if family == "nested":
        return generator.query(depth)
    made: Source = getattr(generator, family)(depth)
    return made


def statement_of(generator: Generator, family: str) -> str:
    """The whole query, now and then a stream."""
    query = query_of(generator, family)
    if generator.chance(25):
        operator = generator.pick(("istream", "dstream", "rstream"))
        generator.noted.operators.add(operator)
        return f"{operator.upper()}({query.text})"
    return query.text
