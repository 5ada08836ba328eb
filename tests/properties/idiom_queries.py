"""Random queries as people type them: every clause, function and type that the rest of the generators leave out.

Rows come often at one instant, are often the same, and now and then there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from random import Random

from tests.properties.aggregate_queries import Aggregates
from tests.properties.queries import (
    NESTED_COLUMNS,
    NESTED_DECLARATIONS,
    STREAM_COLUMNS,
    Column,
    Generator,
    Source,
    query_of,
)
from tests.properties.stream_queries import StreamGenerator
from tests.properties.streams import ARRAYS, JSONS, ROW, STRUCTS, ZONES, inputs
from tests.properties.window_queries import BOUNDS, WindowGenerator
from tests.run_locally import Rows
from transom.plan.no_from import ONE_ROW

FAMILIES = (
    "values", "corresponding", "sets_in_a_row", "named_windows", "over", "ranks_of_groups", "group_all", "group_sets",
    "windows_of_groups", "join_chain", "joined_by_names", "with_names", "stars", "sub_query_in_a_value",
    "row_questions", "lateral", "group_sub_query", "named_values", "words", "as_of", "timed_join", "limit",
    "distinct_on", "any",
)  # fmt: skip

DECLARATIONS = NESTED_DECLARATIONS.replace("j JSON", "j JSON, d DATE, h INTERVAL, y BOOLEAN")
MORE_COLUMNS = (("d", "date"), ("h", "interval"), ("y", "bool"))
DAYS = (date(2024, 1, 31), date(2024, 2, 29), date(2023, 12, 31), date(2024, 1, 31), None)
INTERVALS = (timedelta(0), timedelta(days=1), timedelta(hours=-9), timedelta(hours=24), timedelta(days=31), None)
TRUTHS = (True, False, None)
OF_TYPE = {
    "int": ("0", "1", "2", "NULL"),
    "text": ("'a'", "'b'", "''", "NULL"),
}


VALUES_OF = {
    "int": {
        "int": (
            "abs({0} % 7)",
            "sign({0})",
            "greatest({0}, 1)",
            "nullif({0}, 1)",
            "TRY_CAST({0} AS TINYINT)",
            "{0} // 2",
        ),
        "interval": (
            "({0} % 5) * INTERVAL '1' DAY",
            "to_days(({0} % 5)::INTEGER)",
        ),
        "date": ("make_date(2024, 2, 1) + ({0} % 5)::INTEGER",),
        "float": (
            "power({0} % 5, 2)",
            "{0} / 2",
        ),
        "text": (
            "CAST({0} AS VARCHAR)",
            "CASE {0} WHEN 1 THEN 'one' WHEN 2 THEN 'two' END",
        ),
        "bool": (
            "{0} IN (1, 2, NULL)",
            "{0} IS NOT DISTINCT FROM 1",
        ),
        "array": ("[{0}::INTEGER, 1]",),
    },
    "text": {
        "text": (
            "regexp_replace({0}, '[ab]', 'c', 'g')",
            "regexp_extract({0}, '(a)(b?)', 2)",
            "md5({0})",
            "sha1({0})",
            "sha256({0})",
            "left({0}, -1)",
            "lpad({0}, 3, '*')",
            "split_part({0}, ' ', 2)",
            "concat({0}, '-', {0})",
            "concat_ws('/', {0}, 'x')",
            "substring({0} FROM 2 FOR 1)",
            "trim(BOTH 'a' FROM {0})",
            "repeat({0}, 2)",
            "array_to_string(string_split({0}, 'b'), '-')",
            "string_split({0}, '')[2]",
        ),
        "other": ("string_split({0}, 'a')",),
        "bool": (
            "regexp_matches({0}, '^a')",
            "{0} ILIKE 'A%'",
            "{0} SIMILAR TO '(a|b)*'",
            "{0} RLIKE 'b$'",
        ),
        "int": (
            "length({0})",
            "position('b' IN {0})",
            "ascii({0})",
        ),
        "stamp": (
            "try_strptime({0} || '1.5.2024', 'a%d.%m.%Y')",
            "strptime('0' || length({0}) % 9 + 1 || '.05.2024', '%d.%m.%Y')",
        ),
    },
    "stamp": {
        "text": (
            "strftime({0}, '%d.%m. %H:%M:%S')",
            "to_char({0}, 'YYYY-MM-DD HH24:MI:SS')",
            "date_format({0}, 'HH:mm:ss')",
            "CAST({0} AS VARCHAR)",
        ),
        "stamp": (
            "date_trunc('minute', {0})",
            "{0} + INTERVAL '1' MONTH",
            "{0} - INTERVAL '1' YEAR",
            "time_bucket(INTERVAL '5' SECOND, {0})",
        ),
        "zone": ("{0} AT TIME ZONE 'Europe/Berlin'",),
        "date": ("CAST({0} AS DATE)",),
        "int": (
            "EXTRACT(second FROM {0})",
            "date_diff('second', {0}, TIMESTAMP '2024-01-01 00:00:00')",
            "TIMESTAMPDIFF(HOUR, {0}, TIMESTAMP '2024-01-01 00:00:00')",
        ),
        "interval": ("{0} - TIMESTAMP '2024-01-01 00:00:00'",),
    },
    "date": {
        "stamp": (
            "{0} + INTERVAL '1' MONTH",
            "{0} - INTERVAL '2 months 1 day'",
            "CAST({0} AS TIMESTAMP)",
        ),
        "date": (
            "{0} + 1",
            "last_day({0})",
            "COALESCE({0}, DATE '2024-02-29')",
        ),
        "text": (
            "dayname({0})",
            "strftime({0}, '%Y/%m')",
        ),
        "int": (
            "{0} - DATE '2024-01-01'",
            "dayofyear({0})",
            "date_diff('month', {0}, DATE '2024-03-31')",
            "quarter({0})",
        ),
        "other": ("date_trunc('month', {0})",),
    },
    "bool": {
        "bool": (
            "NOT {0}",
            "{0} IS TRUE",
            "{0} IS UNKNOWN",
        ),
        "int": (
            "CAST({0} AS INTEGER)",
            "if({0}, 1, 2)",
        ),
    },
    "float": {
        "float": (
            "round({0}, 1)",
            "floor({0})",
            "sqrt(abs({0}))",
        ),
        "bool": ("isnan({0})",),
        "text": ("CAST({0} AS VARCHAR)",),
        "real": ("CAST({0} AS REAL)",),
    },
    "decimal": {
        "decimal": (
            "round({0}, 1)",
            "trunc({0})",
            "{0} % 2",
            "least({0}, 1)",
        ),
        "text": ("CAST({0} AS VARCHAR)",),
        "float": ("CAST({0} AS DOUBLE)",),
    },
    "json": {
        "int": ("json_value({0}, '$.a' RETURNING INTEGER)",),
        "json": (
            "{0} -> '$[0]'",
            "{0} -> '$[-1]'",
        ),
        "text": (
            "{0} ->> '$.a.a'",
            "json_type({0})",
        ),
        "other": ("json_value({0}, '$.a')",),
    },
}
"""By the type of a column what can be made of it, by the type of that."""
CONDITIONS = {
    "int": (
        "{0} BETWEEN 1 AND 3",
        "{0} IN (1, 2, NULL)",
        "{0} NOT IN (0, 5)",
        "{0} IS DISTINCT FROM 1",
        "{0} = ANY (ARRAY[1, 2, NULL])",
        "NOT ({0} <=> NULL)",
    ),
    "text": (
        "{0} RLIKE 'a'",
        "regexp_full_match({0}, 'a+')",
        "{0} NOT LIKE 'a_'",
        "{0} ILIKE 'A%'",
    ),
    "stamp": (
        "EXTRACT(second FROM {0}) % 2 = 0",
        "{0} < TIMESTAMP '1970-01-01 00:00:10'",
        "{0} + INTERVAL '1' MONTH > TIMESTAMP '2023-12-14 22:13:30'",
    ),
    "date": (
        "{0} >= DATE '2024-01-31'",
        "{0} + INTERVAL '1' MONTH = TIMESTAMP '2024-02-29 00:00:00'",
        "{0} BETWEEN DATE '2024-01-01' AND DATE '2024-02-28'",
        "{0} IN (DATE '2024-01-31', '2023-12-31')",
    ),
    "bool": (
        "{0}",
        "NOT {0}",
        "{0} IS NOT TRUE",
        "{0} IS UNKNOWN",
    ),
    "other": (
        "{0} IS NULL",
        "{0} IS NOT NULL",
    ),
}


def rows_of_inputs(random: Random, bounds: dict[str, int]) -> dict[str, Rows]:
    """As `inputs`, with all columns; often at few instants or with rows that are the same, or without any row."""
    given = inputs(random, bounds)
    values = (*ROW, ARRAYS, STRUCTS, ZONES, JSONS, DAYS, INTERVALS, TRUTHS)
    few = random.random() < 0.3
    drawn = [tuple(random.choice(v) for v in values) for _ in range(4)]
    for name in ("s", "t", "u"):
        rows = [(row[0], *(random.choice(v) for v in values)) for row in given[name]]
        if few:
            rows = [(row[0], *random.choice(drawn)) for row in rows]
        if random.random() < 0.3:
            rows = _at_few_instants(rows, bounds[name])
        given[name] = [] if random.random() < 0.05 else rows
    given[ONE_ROW] = [(1,)]
    return given


def _at_few_instants(rows: Rows, bound: int) -> Rows:
    """In order where they have to be."""
    moved = [(row[0].replace(second=row[0].second // 4 * 4), *row[1:]) for row in rows]
    return sorted(moved, key=lambda row: row[0]) if bound == 0 else moved


class IdiomGenerator(Aggregates, StreamGenerator, WindowGenerator):
    def __init__(self, random: Random, repeats: int = 0) -> None:
        super().__init__(random, repeats)
        self.stream_columns = STREAM_COLUMNS * 2 + NESTED_COLUMNS + MORE_COLUMNS * 2 + (("ts", "stamp"),)
        self.names: list[Source] = []

    # --- what stands in FROM -----------------------------------------------------------------------------------------

    def window(self, columns: tuple[Column, ...]) -> str:
        return WindowGenerator.window(self, columns) if self.chance(20) else Generator.window(self, columns)

    def source(self, depth: int) -> Source:
        if self.names and self.chance(60):
            return self.pick(self.names)
        if depth > 0 and self.chance(50):
            inner = self.query(depth - 1)
            return Source(f"({inner.text})", inner.columns)
        kind = self.random.random() * 100
        if kind < 8 and self.joined:
            return self.constants()
        if kind < 16:
            return self.window_table()
        if kind < 22:
            stream = self.without_repeats(2)
            return Source(f"{stream.text} {self.window(stream.columns)}", stream.columns)
        if kind < 28:
            self.noted.operators.add("unnest")
            return self.unnested(self.pick(("s", "t")))
        return Generator.source(self, 0)

    def constants(self) -> Source:
        """Rows of constants, or the elements of a constant array."""
        self.noted.operators.add("values")
        if self.chance(25):
            elements = f"UNNEST([{', '.join(self.pick(OF_TYPE['int']) for _ in range(3))}, 1])"
            return Source(f"(SELECT e AS k FROM {elements} AS w(e))", (Column("k", "int"),))
        return Source(
            f"(SELECT k, g FROM ({self.rows_of_constants()}) AS v(k, g))", (Column("k", "int"), Column("g", "text"))
        )

    def rows_of_constants(self) -> str:
        rows = [
            f"({self.pick(OF_TYPE['int'])}, {self.pick(OF_TYPE['text'])})" for _ in range(self.random.randint(1, 4))
        ]
        return f"VALUES (1, 'a'), {', '.join(rows)}"

    def narrow(self, depth: int) -> Source:
        """A few columns of an input, under names that others have as well."""
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        chosen: dict[str, Column] = {}
        for column in self.random.sample(columns, min(len(columns), self.random.randint(2, 4))):
            name = {"int": "k", "text": "g"}.get(column.type, f"of_{column.type}")
            chosen.setdefault(name, column)
        items = ", ".join(f"{column.name} AS {name}" for name, column in chosen.items())
        out = tuple(Column(name, column.type) for name, column in chosen.items())
        return Source(f"(SELECT {items} FROM {source.text} AS {alias}{self.where(columns, 20)})", out)

    # --- queries -----------------------------------------------------------------------------------------------------

    def query(self, depth: int) -> Source:
        if self.chance(40):
            return Generator.query(self, depth)
        family = self.pick(FAMILIES[:-4])
        made: Source = getattr(self, family)(min(depth, 1))
        return made

    def values(self, depth: int) -> Source:
        """Constants beside, or around, what a query gives."""
        constants = self.constants()
        source, alias = self.narrow(depth), self.alias()
        columns = self.qualified(source, alias)
        other = self.alias()
        of_constants = self.qualified(constants, other)
        numbers = [column for column in columns if column.type == "int"]
        texts = [column for column in columns if column.type == "text"]
        if numbers and texts and self.chance(40):
            kind = self.pick(("UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"))
            self.noted.operators.add(f"{kind.lower()} of values")
            body = f"SELECT {numbers[0].name} AS c0, {texts[0].name} AS c1 FROM {source.text} AS {alias}"
            sides = [body, f"SELECT col0 AS c0, col1 AS c1 FROM ({self.rows_of_constants()})"]
            if self.chance(40):
                self.random.shuffle(sides)
            return Source(f"{sides[0]} {kind} {sides[1]}", (Column("c0", "int"), Column("c1", "text")))
        kind = self.pick(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"))
        conditions = self.equalities(columns, of_constants) or [self.predicate(columns + of_constants, 1)]
        there = columns if kind in ("SEMI JOIN", "ANTI JOIN") else columns + of_constants
        items, out = self.items(there)
        sides = [f"{source.text} AS {alias}", f"{constants.text} AS {other}"]
        if kind not in ("SEMI JOIN", "ANTI JOIN") and self.chance(40):
            sides.reverse()
        return Source(f"SELECT {items} FROM {sides[0]} {kind} {sides[1]} ON {' AND '.join(conditions)}", out)

    def corresponding(self, depth: int) -> Source:
        """Columns by their names, in another order on the other side, and some that only one side has."""
        kind = self.pick(("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"))
        self.noted.operators.add(f"{kind.lower()} corresponding")
        sides = [(self.narrow(max(depth - 1, 0)), self.alias()) for _ in range(2)]
        left, right = (self.qualified(*side) for side in sides)
        pairs = [(a, b) for a in left for b in right if a.type == b.type]
        if not pairs:
            return self.select(depth)
        chosen = self.some(pairs, 3)
        names = [f"c{i}" for i in range(len(chosen))]
        texts = []
        for side, (source, alias) in enumerate(sides):
            columns = (left, right)[side]
            items = [f"{pair[side].name} AS {name}" for pair, name in zip(chosen, names, strict=True)]
            items += [f"{self.pick(columns).name} AS only{side}"] * self.chance(40)
            order = self.random.sample(items, len(items)) if side else items
            texts.append(f"SELECT {', '.join(order)} FROM {source.text} AS {alias}{self.where(columns, 20)}")
        by = self.some(names, 2) if self.chance(40) else names
        listed = f" BY ({', '.join(by)})" if by is not names else ""
        text = f"{texts[0]} {kind} CORRESPONDING{listed} {texts[1]}"
        out = {name: Column(name, a.type) for name, (a, _) in zip(names, chosen, strict=True)}
        order = by if by is not names else names
        return Source(f"(SELECT * FROM ({text}))", tuple(out[name] for name in order))

    def sets_in_a_row(self, depth: int) -> Source:
        """Three queries or four, bound as INTERSECT binds, or in parentheses."""
        sides = [(self.narrow(max(depth - 1, 0)), self.alias()) for _ in range(self.pick((3, 3, 4)))]
        columns = [self.qualified(*side) for side in sides]
        types = [{column.type for column in each} for each in columns]
        common = sorted(set.intersection(*types))
        if not common:
            return self.corresponding(depth)
        type_ = self.pick(common)
        texts = []
        for (source, alias), own in zip(sides, columns, strict=True):
            name = self.pick([column for column in own if column.type == type_]).name
            texts.append(f"SELECT {name} AS c0 FROM {source.text} AS {alias}{self.where(own, 20)}")
        text = texts[0]
        for other in texts[1:]:
            kind = self.pick(("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"))
            self.noted.operators.add(f"{kind.lower()} in a row")
            text = f"({text}) {kind} {other}" if self.chance(30) else f"{text} {kind} {other}"
        return Source(text, (Column("c0", type_),))

    def named_windows(self, depth: int) -> Source:
        """WINDOW names what OVER means, for aggregates and ranks, also in QUALIFY."""
        self.noted.operators.add("named window")
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        items, out = self.items(columns, most=2)
        by = f"PARTITION BY {', '.join(column.name for column in self.keys(tuple(columns)))}" * self.chance(70)
        order = f"ORDER BY {', '.join(self.sorted_by(column.name) for column in self.some(columns, 2))}"
        frame = f" {self.frame()}" * self.chance(30)
        made: list[tuple[str, str]] = []
        for _ in range(self.random.randint(1, 3)):
            function = self.pick(("ROW_NUMBER()", "RANK()", "DENSE_RANK()", "sum", "sum", "lag"))
            if function == "sum":
                call, type_ = self.pick(Generator.calls(self, columns))
                made.append((f"{call} OVER {self.pick(('v', 'w', 'f'))}", type_))
            elif function == "lag":
                column = self.pick(columns)
                made.append((f"{self.pick(('LAG', 'LEAD', 'FIRST_VALUE'))}({column.name}) OVER w", column.type))
            else:
                made.append((f"{function} OVER w", "int"))
        asked = self.pick(("RANK() OVER w <= 2", "COUNT(*) OVER v > 1", "ROW_NUMBER() OVER w BETWEEN 2 AND 3"))
        qualify = f" QUALIFY {asked}" * self.chance(50)
        shown = ", ".join(f"{call} AS o{i}" for i, (call, _) in enumerate(made))
        body = f"FROM {source.text} AS {alias}{self.where(columns, 30)}"
        windows = f"WINDOW v AS ({by}), w AS ({by} {order}), f AS ({by} {order}{frame})"
        text = f"SELECT {items}, {shown} {body} {windows}{qualify}"
        more = tuple(Column(f"o{i}", type_) for i, (_, type_) in enumerate(made))
        return Source(f"(SELECT * FROM ({text}))", (*out, *more))

    def ranks_of_groups(self, depth: int) -> Source:
        """Groups beside each other: ranked, or in a total of all."""
        self.noted.operators.add("over groups")
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        keys = self.keys(tuple(columns))
        calls = Generator.calls(self, columns)[:2]
        call = self.pick(calls)[0]
        way = self.pick(("", " DESC", " DESC NULLS LAST"))
        within = f"PARTITION BY {keys[0].name} " * self.chance(40)
        over, type_ = self.pick(
            (
                (f"{self.pick(('RANK', 'ROW_NUMBER', 'DENSE_RANK'))}() OVER ({within}ORDER BY {call}{way})", "int"),
                (f"SUM(COUNT(*)) OVER ({within.strip()})", "decimal"),
                (f"MAX({call}) OVER ({within.strip()})", calls[0][1] if call == calls[0][0] else "other"),
            )
        )
        items = [*(key.name for key in keys), *(text for text, _ in calls), over]
        types = [*(key.type for key in keys), *(each for _, each in calls), type_]
        shown = ", ".join(f"{item} AS {alias}i{i}" for i, item in enumerate(items))
        by = ", ".join(key.name for key in keys)
        qualify = f" QUALIFY {alias}i{len(items) - 1} <= 2" if type_ == "int" and self.chance(60) else ""
        text = f"SELECT {shown} FROM {source.text} AS {alias}{self.where(columns, 20)} GROUP BY {by}{qualify}"
        return Source(f"(SELECT * FROM ({text}))", tuple(Column(f"{alias}i{i}", each) for i, each in enumerate(types)))

    def group_all(self, depth: int) -> Source:
        """Groups by all, by positions, by names of the SELECT list, which no input has, or by the values themselves."""
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        keys = [self.value(columns) for _ in range(self.random.randint(1, 2))]
        calls = self.calls(columns) if self.chance(50) else Generator.calls(self, columns)
        items = [*keys, *calls]
        shown = [f"{item} AS {alias}i{i}" for i, (item, _) in enumerate(items)]
        way = self.pick(("all", "all", "positions", "names", "values"))
        self.noted.operators.add(f"group by {way}")
        by = {
            "all": "ALL",
            "positions": ", ".join(str(i + 1) for i in range(len(keys))),
            "names": ", ".join(f"{alias}i{i}" for i in range(len(keys))),
            "values": ", ".join(value for value, _ in keys),
        }[way]
        having = self.pick(
            ("", "", " HAVING COUNT(*) > 1", f" HAVING {calls[0][0]} IS NOT NULL", " HAVING COUNT() < 3")
        )
        out = tuple(Column(f"{alias}i{i}", "other" if type_ == "list" else type_) for i, (_, type_) in enumerate(items))
        where = self.where(columns, 25)
        return Source(f"SELECT {', '.join(shown)} FROM {source.text} AS {alias}{where} GROUP BY {by}{having}", out)

    def group_sets(self, depth: int) -> Source:
        """Several groupings at once: ROLLUP, CUBE and GROUPING SETS, alone or beside a key."""
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        keys = self.random.sample(columns, min(len(columns), self.random.randint(1, 3)))
        keys = list({key.name: key for key in keys}.values())
        names = [key.name for key in keys]
        subsets = [f"({', '.join(self.random.sample(names, self.random.randint(0, len(names))))})" for _ in range(2)]
        ways = {
            "rollup": f"ROLLUP ({', '.join(names)})",
            "cube": f"CUBE ({', '.join(names)})",
            "grouping sets": f"GROUPING SETS (({', '.join(names)}), {', '.join(subsets)})",
            "with rollup": f"{', '.join(names)} WITH ROLLUP",
            "beside a key": f"{names[0]}, CUBE ({', '.join(names[1:] or names)})",
        }
        way = self.pick(list(ways))
        self.noted.operators.add(way)
        listed = [*((key.name, key.type) for key in keys), *Generator.calls(self, columns)]
        if self.chance(60):
            listed.append((f"GROUPING({', '.join(self.random.sample(names, len(names)))})", "int"))
        shown = ", ".join(f"{item} AS {alias}i{i}" for i, (item, _) in enumerate(listed))
        having = self.pick(("", "", " HAVING COUNT(*) > 1", f" HAVING GROUPING({names[0]}) = 0"))
        text = f"SELECT {shown} FROM {source.text} AS {alias}{self.where(columns, 25)} GROUP BY {ways[way]}{having}"
        return Source(
            f"(SELECT * FROM ({text}))", tuple(Column(f"{alias}i{i}", each) for i, (_, each) in enumerate(listed))
        )

    def windows_of_groups(self, depth: int) -> Source:
        """TUMBLE, HOP and SESSION in GROUP BY, or as tables with TABLE and DESCRIPTOR, as Flink has them."""
        name, alias = self.pick(("s", "t", "u")), self.alias()
        columns = self.qualified(Source(name, tuple(Column(*column) for column in self.stream_columns)), alias)
        columns = [column for column in columns if column.type != "stamp"]
        keys = self.some(columns, 1) * self.chance(60)
        calls = Generator.calls(self, columns)
        size, slide = self.random.randint(2, 6), self.random.randint(1, 3)
        kind = self.pick(("TUMBLE", "HOP", "SESSION"))
        lengths = (
            f"INTERVAL '{slide}' SECOND, INTERVAL '{size}' SECOND" if kind == "HOP" else f"INTERVAL '{size}' SECOND"
        )
        self.noted.windows.add(kind.lower())
        if self.chance(50):
            self.noted.operators.add(f"{kind.lower()} of groups")
            items = [f"{kind}_START({alias}.ts, {lengths})", f"{kind}_END({alias}.ts, {lengths})"]
            body = f"FROM {name} AS {alias} GROUP BY {kind}({alias}.ts, {lengths})"
        else:
            self.noted.operators.add(f"{kind.lower()} of a table")
            within = f" PARTITION BY {keys[0].name.split('.')[1]}" if keys and kind == "SESSION" else ""
            items = [f"{alias}.window_start", f"{alias}.window_end"]
            body = (
                f"FROM TABLE({kind}(TABLE {name}{within}, DESCRIPTOR(ts), {lengths})) AS {alias} "
                f"GROUP BY {alias}.window_start, {alias}.window_end"
            )
        body += "".join(f", {key.name}" for key in keys)
        listed = [*((item, "stamp") for item in items), *((key.name, key.type) for key in keys), *calls]
        shown = ", ".join(f"{item} AS c{i}" for i, (item, _) in enumerate(listed))
        having = " HAVING COUNT(*) > 1" * self.chance(20)
        return Source(
            f"SELECT {shown} {body}{having}", tuple(Column(f"c{i}", each) for i, (_, each) in enumerate(listed))
        )

    def join_chain(self, depth: int) -> Source:
        """Joins of any kind after each other, and now and then within parentheses."""
        self.joined += 1
        sources = [self.source(depth if i == 0 else 0) for i in range(self.pick((2, 3, 3)))]
        self.joined -= 1
        columns: list[Column] = []
        text = ""
        for i, source in enumerate(sources):
            alias = self.alias()
            of_source = self.qualified(source, alias)
            if i == 0:
                text, columns = f"{source.text} AS {alias}", of_source
                continue
            kind = self.pick(
                ("JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL OUTER JOIN", "SEMI JOIN", "ANTI JOIN")
            )
            self.noted.operators.add(f"chain of {kind.lower()}")
            conditions = self.equalities(columns, of_source)
            if not conditions or self.chance(30):
                conditions.append(self.predicate(columns + of_source, 1))
            if kind in ("JOIN", "INNER JOIN") and self.chance(15):
                self.noted.operators.add("sub-query in on")
                conditions.append(self.asked(columns + of_source, 0))
            text += f" {kind} {source.text} AS {alias} ON {' AND '.join(conditions)}"
            if kind not in ("SEMI JOIN", "ANTI JOIN"):
                columns = columns + of_source
        items, out = self.items(columns)
        return Source(f"SELECT {items} FROM {text}{self.where(columns, 30)}", out)

    def joined_by_names(self, depth: int) -> Source:
        """NATURAL, or USING: inner joins, too, and several after each other."""
        self.joined += 1
        first, second, third = self.narrow(depth), self.narrow(0), self.narrow(0)
        self.joined -= 1
        kind = self.pick(("INNER", "INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"))
        aliases = self.alias(), self.alias()
        joined = self.by_names(kind, (first, second), aliases)
        if joined is None:
            return self.join_chain(depth)
        if self.chance(30) and kind not in ("SEMI", "ANTI"):
            common = {c.name: c.type for c in first.columns}
            shared = [
                n
                for n, t in common.items()
                if all((n, t) in {(c.name, c.type) for c in each.columns} for each in (second, third))
            ]
            if shared:
                name, way = self.pick(shared), self.pick(("LEFT", "FULL", "INNER", "RIGHT"))
                self.noted.operators.add("using twice")
                text = f"{first.text} AS {aliases[0]} {kind} JOIN {second.text} AS {aliases[1]} USING ({name})"
                text += f" {way} JOIN {third.text} AS {self.alias()} USING ({name})"
                return Source(
                    f"SELECT {name} AS c0, COUNT(*) AS c1 FROM {text} GROUP BY {name}",
                    (Column("c0", common[name]), Column("c1", "int")),
                )
        return joined

    def with_names(self, depth: int) -> Source:
        """WITH: a query that is used by name, perhaps twice, perhaps by the next one."""
        self.noted.operators.add("with")
        names, before = [], self.names
        self.names = list(before)
        for _ in range(self.pick((1, 1, 2))):
            inner = self.query(0)
            name = f"w{self.alias()}"
            listed = ", ".join(f"n{i}" for i in range(len(inner.columns)))
            names.append(f"{name} ({listed}) AS ({inner.text})")
            self.names.append(
                Source(name, tuple(Column(f"n{i}", column.type) for i, column in enumerate(inner.columns)))
            )
        make = self.pick(
            (self.select, self.join_chain, self.corresponding, self.group_all, self.sub_query, self.outer_join)
        )
        outer = make(depth)
        self.names = before
        return Source(f"(WITH {', '.join(names)} SELECT * FROM ({outer.text}))", outer.columns)

    def stars(self, depth: int) -> Source:
        """All columns but some, with others in their place, FROM first, DISTINCT."""
        self.noted.operators.add("star")
        source, alias = self.narrow(depth), self.alias()
        columns = self.qualified(source, alias)
        kinds = ["*", f"{alias}.*"]
        out = list(source.columns)
        if len(out) > 1 and self.chance(50):
            gone = self.pick(out)
            out.remove(gone)
            kinds = [f"* {self.pick(('EXCEPT', 'EXCLUDE'))} ({gone.name})"]
        if self.chance(40):
            at = self.random.randrange(len(out))
            value, type_ = self.value([column for column in columns if column.name == f"{alias}.{out[at].name}"])
            kinds = [f"{kinds[0]} REPLACE ({value} AS {out[at].name})"]
            out[at] = Column(out[at].name, type_)
        distinct = "DISTINCT " * self.chance(40)
        body = f"FROM {source.text} AS {alias}"
        select = f"SELECT {distinct}{self.pick(kinds)}"
        where = self.where(columns, 40)
        text = f"{body} {select}{where}" if self.chance(30) else f"{select} {body}{where}"
        return Source(f"(SELECT * FROM ({text}))", tuple(out))

    def sub_query_in_a_value(self, depth: int) -> Source:
        """A query as a part of a value, in the SELECT list and in WHERE, EXISTS there too."""
        self.noted.operators.add("sub-query in a value")
        self.joined += 1
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        items, out = self.items(columns)
        value, type_ = self.value_asked(columns)
        asked = self.asked(columns, 0)
        self.joined -= 1
        made, made_type = self.pick(
            (
                (f"COALESCE({value}, {value})", type_),
                (f"{value} IS NULL", "bool"),
                (f"CASE WHEN {asked} THEN 1 WHEN {self.predicate(columns, 0)} THEN 2 END", "int"),
                (f"({asked}) IS NOT TRUE", "bool"),
            )
        )
        same = [column.name for column in columns if column.type == type_]
        if same and self.chance(40):
            compared = self.pick(("=", "<>", "<", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
            where = f" WHERE {self.pick(same)} {compared} {value}"
            return Source(f"SELECT {items} FROM {source.text} AS {alias}{where}", out)
        n = len(out)
        return Source(
            f"SELECT {items}, {made} AS c{n} FROM {source.text} AS {alias}", (*out, Column(f"c{n}", made_type))
        )

    def row_questions(self, depth: int) -> Source:
        """Several columns at once: IN of rows, of constants and of queries; COUNT(DISTINCT rows)."""
        self.noted.operators.add("rows compared")
        self.joined += 1
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        inner, other = self.source(0), self.alias()
        self.joined -= 1
        of_inner = self.qualified(inner, other)
        negated = "NOT " * self.chance(40)
        simple = [column for column in columns if column.type in OF_TYPE]
        pairs = [(a, b) for a in columns for b in of_inner if a.type == b.type]
        if simple and (self.chance(30) or not pairs):
            a, b = self.pick(simple), self.pick(simple)
            rows = ", ".join(f"({self.pick(OF_TYPE[a.type])}, {self.pick(OF_TYPE[b.type])})" for _ in range(3))
            asked = f"({a.name}, {b.name}) {negated}IN ({rows})"
        elif pairs:
            chosen = [self.pick(pairs) for _ in range(self.pick((2, 2, 3)))]
            left, right = (", ".join(pair[side].name for pair in chosen) for side in (0, 1))
            where = self.equalities(columns, of_inner) if self.chance(40) else []
            where += [self.predicate(of_inner, 0)] * self.chance(30)
            around = f" WHERE {' AND '.join(where)}" if where else ""
            asked = f"({left}) {negated}IN (SELECT {right} FROM {inner.text} AS {other}{around})"
        else:
            asked = self.predicate(columns, 1)
        if simple and self.chance(25):
            key = self.pick(simple)
            both = f"COUNT(DISTINCT ({key.name}, {self.pick(simple).name})) AS c1"
            return Source(
                f"SELECT {key.name} AS c0, {both} FROM {source.text} AS {alias} WHERE {asked} GROUP BY {key.name}",
                (Column("c0", key.type), Column("c1", "int")),
            )
        items, out = self.items(columns)
        return Source(f"SELECT {items} FROM {source.text} AS {alias} WHERE {asked}", out)

    def named_values(self, depth: int) -> Source:
        """Values that later ones and WHERE use by the name that the SELECT list gives them."""
        self.noted.operators.add("named values")
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        named: list[Column] = []
        items = []
        for i in range(self.random.randint(2, 3)):
            value, type_ = self.value(named if named and self.chance(70) else columns)
            items.append(f"{value} AS {alias}v{i}")
            named.append(Column(f"{alias}v{i}", type_))
        where = f" WHERE {self.predicate(named, 1)}" if self.chance(60) else ""
        return Source(f"SELECT {', '.join(items)} FROM {source.text} AS {alias}{where}", tuple(named))

    def words(self, depth: int) -> Source:
        """A row for each part of a text, alone or counted."""
        source, alias = self.source(depth), self.alias()
        columns = self.qualified(source, alias)
        texts = [column.name for column in columns if column.type == "text"]
        if not texts:
            return self.named_values(depth)
        self.noted.operators.add("words")
        join = self.pick((", {}", " CROSS JOIN {}", " LEFT JOIN {} ON TRUE"))
        separator = self.pick(("'b'", "' '", "''"))
        parts = f"UNNEST(string_split({self.pick(texts)}, {separator}))"
        body = f"FROM {source.text} AS {alias}{join.format(f'{parts} AS {alias}u({alias}w)')}"
        word = Column(f"{alias}w", "text")
        if self.chance(50):
            return Source(
                f"SELECT {word.name} AS c0, COUNT(*) AS c1 {body} GROUP BY {word.name}",
                (Column("c0", "text"), Column("c1", "int")),
            )
        items, out = self.items([*columns, word, word])
        return Source(f"SELECT {items} {body}{self.where([*columns, word], 30)}", out)

    # --- pieces ------------------------------------------------------------------------------------------------------

    def keys(self, columns: tuple[Column, ...]) -> list[Column]:
        return WindowGenerator.keys(self, columns) if _bounds_of(columns) else Generator.keys(self, columns)

    def equalities(self, left: list[Column], right: list[Column]) -> list[str]:
        both = _bounds_of(left) and _bounds_of(right)
        return (WindowGenerator if both else Generator).equalities(self, left, right)

    def bounds(self) -> str:
        if not self.chance(25):
            return super().bounds()
        offset = f" OFFSET {self.random.randint(1, 2)} ROWS" * self.chance(40)
        return f"{offset} FETCH FIRST {self.random.randint(1, 3)} ROWS ONLY"

    def calls(self, columns: list[Column]) -> list[tuple[str, str]]:
        return [(call, "other" if type_ == "list" else type_) for call, type_ in super().calls(columns)]

    def value(self, columns: list[Column]) -> tuple[str, str]:
        column = self.pick(columns)
        if column.type not in VALUES_OF or self.chance(50):
            return super().value([column])
        made = [(text, type_) for type_, texts in VALUES_OF[column.type].items() for text in texts]
        text, type_ = self.pick(made)
        self.noted.operators.add(text.format("_"))
        return text.format(column.name), type_

    def predicate(self, columns: list[Column], depth: int) -> str:
        column = self.pick(columns)
        conditions = CONDITIONS.get(column.type, ())
        if conditions and (column.type not in ("int", "text") or self.chance(40)):
            return self.pick(conditions).format(column.name)
        return Generator.predicate(self, [column, *(each for each in columns if each.type == column.type)], depth)


def _bounds_of(columns: Sequence[Column]) -> list[Column]:
    """Those that are the bounds of a window."""
    return [column for column in columns if column.name.split(".")[-1] in BOUNDS]


def statement_of(generator: IdiomGenerator, family: str) -> str:
    """The whole query, now and then a stream; RSTREAM is not for windows that are tables."""
    query = query_of(generator, family)
    if generator.chance(25):
        tables = {"tumble", "hop", "session"} & generator.noted.windows
        operator = generator.pick(("istream", "dstream", "istream" if tables else "rstream"))
        generator.noted.operators.add(operator)
        return f"{operator.upper()}({query.text})"
    return query.text
