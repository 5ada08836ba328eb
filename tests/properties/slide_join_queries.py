"""Random joins of two to four sliding windows on a key that all of them have, reported slide by slide."""

from __future__ import annotations

from tests.properties.queries import STREAM_COLUMNS, Column, Generator, Source

_SETS = (("k",), ("k",), ("g",), ("k", "g"), ("x",), ("f",), ("m",), ("g", "x"))
_SECONDS = (1, 2, 2, 3, 4)


class SlideJoins(Generator):
    slides: tuple[int, ...] = _SECONDS

    def statement(self) -> str:
        body, columns = self.join_of_slides()
        items, _ = self.items(columns)
        return f"RSTREAM(SELECT {items} {body});"

    def join_of_slides(self) -> tuple[str, list[Column]]:
        """What is joined from FROM on, and the columns of all inputs."""
        count = self.pick((2, 2, 2, 3, 3, 4))
        keys = self.pick(_SETS)
        self.noted.operators.add(f"slide join of {count} on {', '.join(keys)}")
        same = self.chance(50)
        window = self.sliding()
        sources: list[Source] = []
        for _ in range(count):
            if sources and self.repeated():
                sources.append(sources[-1])
                continue
            sources.append(self.input(window if same else self.sliding(), keys))
        aliases = [self.alias() for _ in sources]
        columns = [self.qualified(source, alias) for source, alias in zip(sources, aliases, strict=True)]
        conditions = []
        for i in range(1, count):
            for key in keys:
                sides = [f"{self.pick(aliases[:i])}.{key}", f"{aliases[i]}.{key}"]
                self.random.shuffle(sides)
                conditions.append(" = ".join(sides))
        if self.chance(15):
            conditions.append(f"{aliases[0]}.k = {aliases[0]}.x")
        if self.chance(35):
            conditions.append(self.predicate([column for own in columns for column in own], 1))
            self.noted.operators.add("predicate")
        self.random.shuffle(conditions)
        parts = ", ".join(f"{source.text} AS {alias}" for source, alias in zip(sources, aliases, strict=True))
        return f"FROM {parts} WHERE {' AND '.join(conditions)}", [column for own in columns for column in own]

    def input(self, window: str, keys: tuple[str, ...]) -> Source:
        columns = tuple(Column(*column) for column in STREAM_COLUMNS)
        text = f"{self.pick(('s', 's', 't', 't', 'u'))} {window}"
        if self.chance(20):
            self.noted.operators.add("sub-query below a slide join")
            where = f" WHERE {self.predicate(list(columns), 1)}"
            return Source(f"(SELECT k, g, x, f, m FROM {text}{where})", columns)
        return Source(text, columns)

    def sliding(self) -> str:
        self.noted.windows.add("slide")
        length = self.pick((*_SECONDS, 5, 7, 8, 12))
        return f"[RANGE {length} SECONDS SLIDE {self.pick(self.slides)} SECONDS]"


class GroupedSlideJoins(SlideJoins):
    """GROUP BY, DISTINCT or one row of all, over such a join, or over its slides as another query takes them."""

    def statement(self) -> str:
        through = self.chance(25)
        self.slides = (2, 4) if through else _SECONDS  # more than a tick apart, whatever that is
        body, columns = self.join_of_slides()
        if not through and self.chance(20):
            self.noted.operators.add("distinct slides")
            items, _ = self.items(columns, most=2)
            return f"RSTREAM(SELECT DISTINCT {items} {body});"
        if through:
            self.noted.operators.add("groups of slides")
            change = self.pick(("RSTREAM", "ISTREAM"))
            items, out = self.items(columns, most=3)
            columns = list(out)
            body = f"FROM (RSTREAM(SELECT {items} {body})) [NOW]"
        else:
            change = "RSTREAM"
        return f"{change}({self.in_groups(body, columns, may_be_one=not through)});"

    def in_groups(self, body: str, columns: list[Column], may_be_one: bool) -> str:
        """Groups of what is in FROM, or all of it as one."""
        one = may_be_one and self.chance(25)
        self.noted.operators.add("slides as one row" if one else "slides in groups")
        keys = [] if one else self.keys(tuple(columns))
        calls = [call for call, _ in self.calls([column for column in columns if column.type != "text"] or columns)]
        texts = [column.name for column in columns if column.type == "text"]
        if texts and self.chance(40):
            self.noted.operators.add("extremes of texts of slides")
            calls += [f"MIN({self.pick(texts)})", f"MAX({self.pick(texts)})"]
        named = [f"{each} AS r{i}" for i, each in enumerate([*(key.name for key in keys), *calls])]
        having = " HAVING COUNT(*) > 1" if self.chance(25) else ""
        by = "" if one else f" GROUP BY {', '.join(key.name for key in keys)}"
        return f"SELECT {', '.join(named)} {body}{by}{having}"


class UnitedSlideJoins(GroupedSlideJoins):
    """UNION of several such joins, perhaps of what another query takes of their slides, and groups of that."""

    def statement(self) -> str:
        through = self.chance(20)
        if through:
            self.slides = (self.pick((2, 4)),)  # of other slides the rest is gone when one comes
        first, columns = self.join_of_slides()
        wanted = self.some(columns, 3)
        selects = [self.selected(first, columns, wanted, through)]
        kinds = [self.pick(("UNION ALL", "UNION ALL", "UNION"))]
        if self.chance(25):
            kinds.insert(0, self.pick(("UNION ALL", kinds[0])))
        for _ in kinds:
            selects.append(self.selected(*self.join_of_slides(), wanted, through))
        united = selects[0] + "".join(f" {kind} {select}" for kind, select in zip(kinds, selects[1:], strict=True))
        self.noted.operators.add("slides through another query united" if through else "slides united")
        change = self.pick(("RSTREAM", "ISTREAM")) if through else "RSTREAM"
        out = [Column(f"c{i}", column.type) for i, column in enumerate(wanted)]
        if kinds[-1] == "UNION" or self.chance(50):
            where = self.where(out, 30)
            return f"{change}(SELECT * FROM ({united}) AS v{where});" if where else f"{change}({united});"
        return f"{change}({self.in_groups(f'FROM ({united}) AS v', out, may_be_one=not through)});"

    def selected(self, body: str, columns: list[Column], wanted: list[Column], through: bool) -> str:
        """Columns of the types that are wanted."""
        chosen = [self.pick([column for column in columns if column.type == each.type]) for each in wanted]
        if through:
            inner = ", ".join(f"{column.name} AS a{i}" for i, column in enumerate(chosen))
            body, chosen = (
                f"FROM (RSTREAM(SELECT {inner} {body})) [NOW]",
                [Column(f"a{i}", column.type) for i, column in enumerate(chosen)],
            )
        items = ", ".join(f"{column.name} AS c{i}" for i, column in enumerate(chosen))
        return f"SELECT {items} {body}"
