"""Regular expressions with a constant pattern. Arrow's and DuckDB's are the same library, RE2."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from transom.kernels.scalar.text import EMPTY
from transom.kernels.scalar.values import Kernel, Value, as_arrays
from transom.plan.expression import Call, Literal
from transom.plan.patterns import flagged, with_named_groups


def _constants(call: Call) -> list[str | int]:
    return [argument.value for argument in call.arguments[1:] if isinstance(argument, Literal)]


def regexp_matches(call: Call) -> Kernel:
    pattern, *options = map(str, _constants(call))
    pattern = flagged(pattern, "".join(options))
    if call.function == "regexp_full_match":
        pattern = rf"\A(?:{pattern})\z"

    def run(text: Value, *_: Value) -> Value:
        return pc.match_substring_regex(text, pattern)

    return run


def regexp_replace(call: Call) -> Kernel:
    """The first match, or all of them with the option g."""
    pattern, new, *others = map(str, _constants(call))
    options = "".join(others)
    most = None if "g" in options else 1
    pattern = flagged(pattern, options)
    return lambda text, *_: pc.replace_substring_regex(text, pattern, new, max_replacements=most)


def regexp_extract(call: Call) -> Kernel:
    """The match or a group of it; an empty text where nothing matches, or there is no such group."""
    pattern, *others = _constants(call)
    group = int(others[0]) if others else 0
    named, groups = with_named_groups(str(pattern))

    def run(text: Value, *_: Value) -> Value:
        (texts,) = as_arrays((text,))
        if group > groups:
            return pc.if_else(texts.is_valid(), EMPTY, pa.scalar(None, texts.type))
        extracted = pc.coalesce(pc.struct_field(pc.extract_regex(texts, named), [group]), EMPTY)
        return pc.if_else(texts.is_valid(), extracted, pa.scalar(None, texts.type))

    return run
