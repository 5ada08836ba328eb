"""Tables of the pages that are written from the sources: functions, options, errors, queries of benchmarks."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from benchmarks import harness
from benchmarks.multiway.benchmark import BENCHMARK as MULTIWAY
from benchmarks.nexmark.contestants import declarations
from benchmarks.nexmark.data import COLUMNS
from benchmarks.nexmark.queries import QUERIES, UNWRITTEN
from benchmarks.nexmark.spark_own import UNSUPPORTED
from tests.docs.pages import RESULTS
from tests.docs.timeline import label
from tests.runtimes_under_test import RUNTIMES
from transom.cli.main import command_parser
from transom.core import errors
from transom.core.time import format_duration
from transom.cql.statements import bind_query, parse_statements
from transom.plan.aggregate_functions import AGGREGATE_FUNCTIONS
from transom.plan.catalogue import Catalogue
from transom.plan.functions import FUNCTIONS, Function
from transom.plan.json_functions import JSON_FUNCTIONS
from transom.plan.nested_functions import NESTED_FUNCTIONS
from transom.plan.options import OPTIONS
from transom.plan.scalar_operators import OPERATORS
from transom.plan.signatures import DATE_FUNCTIONS, NUMBER_FUNCTIONS, TEXT_FUNCTIONS
from transom.runtimes.reference.history import RelationHistory

EXAMPLES: Final[dict[str, str]] = {
    "+": "2 + 3",
    "-": "DATE '2024-03-01' - DATE '2024-02-01'",
    "*": "1.5 * 2.25",
    "/": "7 / 2",
    "//": "-7 // 2",
    "%": "-7 % 2",
    "&": "6 & 3",
    "|": "6 | 3",
    "xor": "xor(6, 3)",
    "~": "~6",
    "<<": "3 << 2",
    ">>": "13 >> 2",
    "negate": "-(2)",
    "=": "'NaN'::DOUBLE = 'NaN'::DOUBLE",
    "<>": "1 <> 2",
    "<": "'B' < 'a'",
    "<=": "2 <= 2",
    ">": "'NaN'::DOUBLE > 1e308",
    ">=": "1 >= 2",
    "is_not_distinct": "NULL IS NOT DISTINCT FROM NULL",
    "in": "2 IN (1, 2, 3)",
    "and": "FALSE AND NULL",
    "or": "TRUE OR NULL",
    "not": "NOT TRUE",
    "is_null": "NULL IS NULL",
    "like": "'50%' LIKE '50!%' ESCAPE '!'",
    "ilike": "'Hall' ILIKE 'h_ll'",
    "||": "'room ' || 7",
    "coalesce": "coalesce(NULL, 7)",
    "nullif": "nullif(7, 7)",
    "if": "if(1 < 2, 'yes', 'no')",
    "add_interval": "TIMESTAMP '2024-02-28 12:00:00' + INTERVAL '1' DAY",
    "add_months": "DATE '2024-01-31' + INTERVAL '1' MONTH",
    "abs": "abs(-2.5)",
    "sign": "sign(-2.5)",
    "round": "round(2.345, 2)",
    "floor": "floor(-2.5)",
    "ceil": "ceil(-2.5)",
    "sqrt": "sqrt(9)",
    "exp": "exp(0)",
    "ln": "ln(1)",
    "log10": "log10(1000)",
    "log2": "log2(8)",
    "power": "power(2, 10)",
    "trunc": "trunc(-2.5)",
    "isnan": "isnan('NaN'::DOUBLE)",
    "isinf": "isinf(1.5)",
    "isfinite": "isfinite(1.5)",
    "pi": "pi()",
    "sin": "sin(0)",
    "cos": "cos(0)",
    "tan": "tan(0)",
    "asin": "asin(0)",
    "acos": "acos(1)",
    "atan": "atan(0)",
    "atan2": "atan2(0, 1)",
    "radians": "radians(180)",
    "degrees": "degrees(pi())",
    "greatest": "greatest(1, NULL, 3)",
    "least": "least(1, NULL, 3)",
    "upper": "upper('hall')",
    "lower": "lower('Hall')",
    "ascii": "ascii('A')",
    "length": "length('hall')",
    "substring": "substring('hall', 2, 2)",
    "left": "left('hall', 2)",
    "right": "right('hall', 2)",
    "trim": "trim('..hall..', '.')",
    "ltrim": "ltrim('..hall..', '.')",
    "rtrim": "rtrim('..hall..', '.')",
    "replace": "replace('hall', 'l', 'ft')",
    "concat": "concat('a', NULL, 1)",
    "concat_ws": "concat_ws(', ', 'a', NULL, 1)",
    "starts_with": "starts_with('hall', 'ha')",
    "ends_with": "ends_with('hall', 'll')",
    "contains": "contains('hall', 'al')",
    "position": "position('l' IN 'hall')",
    "lpad": "lpad('7', 3, '0')",
    "rpad": "rpad('hall', 3, '.')",
    "repeat": "repeat('ab', 3)",
    "split_part": "split_part('a/b/c', '/', 2)",
    "split_index": "split_index('a/b/c', '/', 2)",
    "regexp_matches": "regexp_matches('room 7', '[0-9]+')",
    "regexp_full_match": "regexp_full_match('room 7', '[0-9]+')",
    "regexp_replace": "regexp_replace('room 7', '[0-9]', 'no. \\0')",
    "regexp_extract": "regexp_extract('room 7', '([a-z]+) ([0-9])', 2)",
    "md5": "md5('hall')",
    "sha1": "sha1('hall')",
    "sha256": "sha256('hall')",
    "year": "year(DATE '2024-05-01')",
    "quarter": "quarter(DATE '2024-05-01')",
    "month": "month(DATE '2024-05-01')",
    "week": "week(DATE '2024-05-01')",
    "day": "day(DATE '2024-05-01')",
    "dayofweek": "dayofweek(DATE '2024-05-01')",
    "dayofyear": "dayofyear(DATE '2024-05-01')",
    "hour": "hour(TIMESTAMP '2024-05-01 10:20:30')",
    "minute": "minute(TIMESTAMP '2024-05-01 10:20:30')",
    "second": "second(TIMESTAMP '2024-05-01 10:20:30')",
    "millisecond": "millisecond(TIMESTAMP '2024-05-01 10:20:30.5')",
    "microsecond": "microsecond(TIMESTAMP '2024-05-01 10:20:30.5')",
    "isodow": "isodow(DATE '2024-05-05')",
    "isoyear": "isoyear(DATE '2024-12-31')",
    "decade": "decade(DATE '2024-05-01')",
    "century": "century(DATE '2024-05-01')",
    "epoch": "epoch(TIMESTAMP '1970-01-01 00:01:00.5')",
    "date_trunc": "date_trunc('hour', TIMESTAMP '2024-05-01 10:20:30')",
    "date_diff": "date_diff('day', DATE '2024-04-30', DATE '2024-05-02')",
    "timezone": "TIMESTAMP '2024-05-01 10:20:30' AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'",
    "time_bucket": "time_bucket(INTERVAL '5' MINUTE, TIMESTAMP '2024-05-01 10:23:30')",
    "epoch_ms": "epoch_ms(1714558830000)",
    "epoch_us": "epoch_us(TIMESTAMP '1970-01-01 00:01:00')",
    "make_timestamp": "make_timestamp(60000000)",
    "make_date": "make_date(2024, 5, 1)",
    "last_day": "last_day(DATE '2024-02-07')",
    "dayname": "dayname(DATE '2024-05-01')",
    "monthname": "monthname(DATE '2024-05-01')",
    "strftime": "strftime(DATE '2024-05-01', '%d %B %Y')",
    "strptime": "strptime('1.5.2024 10:20', '%d.%m.%Y %H:%M')",
    "try_strptime": "try_strptime('soon', '%Y-%m-%d')",
    "to_char": "to_char(TIMESTAMP '2024-05-01 10:20:30', 'YYYY-MM-DD HH24:MI')",
    "to_timestamp": "to_timestamp('01.05.2024 10:20', 'DD.MM.YYYY HH24:MI')",
    "to_date": "to_date('01.05.2024', 'DD.MM.YYYY')",
    "date_format": "date_format(TIMESTAMP '2024-05-01 10:20:30', 'yyyy-MM-dd HH:mm')",
    "json_extract": "'{\"a\": [1, 2.50]}' -> '$.a[1]'",
    "json_extract_string": "'{\"a\": \"x\"}' ->> 'a'",
    "json_value": "json_value('{\"a\": 1, \"b\": []}', '$.a')",
    "json_array_length": "json_array_length('[1, 2, 3]')",
    "json_type": "json_type('{\"a\": true}', '$.a')",
    "list_value": "[1, 2, NULL]",
    "struct_pack": "{'room': 'hall', 'celsius': 21}.room",
    "list_slice": "[4, 5, 6, 7][2:3]",
    "list_concat": "list_concat([4], [5, 6])",
    "list_append": "list_append([4, 5], 6)",
    "list_prepend": "list_prepend(3, [4, 5])",
    "list_sort": "list_sort([5, NULL, 4])",
    "list_distinct": "list_distinct([5, 4, NULL, 5])",
    "list_reverse": "list_reverse([4, 5, NULL])",
    "list_min": "list_min([5, NULL, 4])",
    "list_max": "list_max([5, NULL, 4])",
    "strlen": "strlen('été')",
    "translate": "translate('hall', 'al', 'o')",
    "range": "range(1, 4)",
    "generate_series": "generate_series(0, 10, 5)",
    "list_extract": "['a', 'b', 'c'][2]",
    "struct_extract": "{'room': 'hall', 'celsius': 21}['celsius']",
    "array_length": "array_length([4, 5])",
    "list_contains": "list_contains([4, 5], 5)",
    "string_split": "string_split('a/b/c', '/')",
    "array_to_string": "array_to_string(['a', NULL, 'b'], ', ')",
    "list_position": "list_position(['a', 'b'], 'b')",
}
"""An expression for every function; its value is computed, not written."""

_GROUPS: Final[tuple[tuple[str, tuple[Function, ...]], ...]] = (
    ("Operators and conditions", OPERATORS),
    ("Numbers", NUMBER_FUNCTIONS),
    ("Texts", TEXT_FUNCTIONS),
    ("Dates and timestamps", DATE_FUNCTIONS),
    ("Arrays and structs", NESTED_FUNCTIONS),
    ("JSON", JSON_FUNCTIONS),
)


def functions() -> str:
    """All functions in groups, each with an example and the value that the engine gives it."""
    assert [function for _, group in _GROUPS for function in group] == list(FUNCTIONS)
    values = _values()
    lines: list[str] = []
    for title, group in _GROUPS:
        lines += [f"## {title}", "", "| written | gives | for example | also called |", "| --- | --- | --- | --- |"]
        for function in group:
            example = f"`{_cell(EXAMPLES[function.name])}` is `{_cell(values[function.name])}`"
            others = ", ".join(f"`{_cell(alias)}`" for alias in function.aliases)
            lines.append(f"| `{_cell(function.usage)}` | {function.gives} | {example} | {others} |")
        lines.append("")
    lines += ["## Aggregates", "", "| written | gives | also called |", "| --- | --- | --- |"]
    for each in AGGREGATE_FUNCTIONS:
        others = ", ".join(f"`{alias.upper()}`" for alias in each.aliases)
        lines.append(f"| `{each.usage}` | {each.gives} | {others} |")
    return "\n".join(lines)


def _values() -> dict[str, str]:
    """The examples in one query over one row; all runtimes must agree on them."""
    catalogue = Catalogue()
    parse_statements("CREATE TABLE one (a INTEGER)", catalogue)
    query = bind_query(f"SELECT {', '.join(EXAMPLES.values())} FROM one", catalogue)
    answers = set()
    for runtime in RUNTIMES.values():
        history = runtime(query, catalogue, {"one": [(1,)]})
        assert isinstance(history, RelationHistory)
        (row,) = history.snapshot(0).elements()
        answers.add(tuple(map(_shown, row)))
    (values,) = answers
    return dict(zip(EXAMPLES, values, strict=True))


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return f"'{value}'" if isinstance(value, str) else _moment(value) or label([value])


def _moment(value: Any) -> str | None:
    return str(value) if hasattr(value, "year") else None


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def options() -> str:
    lines = ["| option | meaning | write | default |", "| --- | --- | --- | --- |"]
    for option in OPTIONS.values():
        default = {
            "tick": format_duration(OPTIONS["tick"].default),
            "step_budget": format_duration(OPTIONS["step_budget"].default),
            "origin": "the first row that is admitted",
            "batch_files": "as many as there are",
        }
        shown = default.get(option.name, f"{option.default}")
        lines.append(f"| `{option.name}` | {option.purpose} | {option.expects} | {shown} |")
    return "\n".join(lines)


def error_classes() -> list[type[errors.TransomError]]:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    return [kind for kind in classes if issubclass(kind, errors.TransomError)]


def error_table() -> str:
    lines = ["| error | when |", "| --- | --- |"]
    lines += [f"| `{kind.__name__}` | {_first_paragraph(kind)} |" for kind in error_classes()]
    return "\n".join(lines)


def commands() -> str:
    """All commands with their options, in the words of `--help`; those of `bench` belong to the benchmarks."""
    with patch.dict(os.environ):
        os.environ.pop("TRANSOM_RUNTIME", None)  # a default depends on it
        parser = command_parser()
    (commands_of,) = (command for command in parser._actions if isinstance(command, argparse._SubParsersAction))
    helps = {command.dest: command.help for command in commands_of._choices_actions}
    return "\n\n".join(_command(name, helps[name] or "", each) for name, each in commands_of.choices.items())


def _command(name: str, purpose: str, parser: argparse.ArgumentParser) -> str:
    said = parser.description or f"{purpose[0].upper()}{purpose[1:]}."
    lines = [f"## transom {name}", "", _cell(said)]
    shown = [action for action in parser._actions if action.dest != "help"]
    if shown:
        lines += ["", "| written | does |", "| --- | --- |"]
    for action in shown:
        metavar = action.metavar if isinstance(action.metavar, str) else None
        value = _cell(metavar or (", ".join(map(str, action.choices)) if action.choices else action.dest.upper()))
        words = [f"`{word}{'' if action.nargs == 0 else f' {value}'}`" for word in action.option_strings]
        text = (action.help or "") % {**vars(action), "prog": parser.prog}
        lines.append(f"| {', '.join(words) or f'`{value}`'} | {_cell(text)} |")
    return "\n".join(lines)


def measured_joins() -> str:
    """What `transom bench multiway --json` has written down, of the machine with the fewest cores first."""
    reported = [json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("multiway*.json")]
    reported.sort(key=lambda document: int(document["machine"]["cores"]))
    return "\n\n".join(
        f"### On {document['machine']['cores']} cores\n\n{harness.text_of(MULTIWAY, document)}" for document in reported
    )


def machines() -> str:
    """The files of results, and the machines that they are from."""
    lines = ["| file | cores | processor | memory | versions |", "| --- | --- | --- | --- | --- |"]
    for path in sorted(RESULTS.glob("*.json")):
        about = json.loads(path.read_text(encoding="utf-8"))["machine"]
        versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
        machine = f"{about['cores']} | {about['processor']} | {about['memory_gib']} GiB"
        lines.append(f"| [{path.name}]({path.name}) | {machine} | {versions} |")
    return "\n".join(lines)


def nexmark_queries() -> str:
    lines = ["| query | asks for | answer | Spark's own streaming |", "| --- | --- | --- | --- |"]
    for query in QUERIES.values():
        requests = query.meaning + (f" ({query.instead})" if query.instead else "")
        kind = "windows that have ended" if query.windowed else "a table that changes" if query.keys else "rows"
        lines.append(f"| {query.name} | {_cell(requests)} | {kind} | {UNSUPPORTED.get(query.name, 'yes')} |")
    return "\n".join(lines)


def nexmark_texts() -> str:
    """As views, so that the page need not say what each gives over which rows."""
    inputs = declarations(Path("nexmark"), list(COLUMNS))
    for part in (", WATERMARK", " WITH ("):
        inputs = inputs.replace(part, part.replace(" ", "\n    ", 1))
    views = "\n\n".join(f"CREATE VIEW {query.name} AS\n{query.cql};" for query in QUERIES.values())
    return f"```cql\n{inputs}\n\n{views}\n```"


def nexmark_unwritten() -> str:
    lines = ["| query | asks for, and why it is not there |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {name} | {why} |" for name, why in UNWRITTEN.items())])


PARTS: Final[dict[str, Callable[[], str]]] = {
    "functions": functions,
    "options": options,
    "errors": error_table,
    "commands": commands,
    "multiway": measured_joins,
    "machines": machines,
    "nexmark": nexmark_queries,
    "nexmark_texts": nexmark_texts,
    "nexmark_unwritten": nexmark_unwritten,
}
"""What may stand in a made part, by its name."""


def _first_paragraph(kind: type) -> str:
    return (kind.__doc__ or "").strip().partition("\n\n")[0]
