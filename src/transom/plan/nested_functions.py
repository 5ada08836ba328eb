"""Functions of arrays and structs: how each is typed."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from transom.core.errors import QueryError
from transom.core.schema import BIGINT, BOOLEAN, DURATION, INTEGER, VARCHAR, arrow_type, is_array, is_nested, is_struct
from transom.plan.expression import Call, Expression, Literal
from transom.plan.scalar_operators import Arguments, Function, misfit
from transom.plan.typing_rules import (
    INTERVAL,
    NULL,
    cannot_mix,
    cast,
    coerce,
    is_integer,
    meeting_type,
    settle,
    struct_type,
)

MOST_FIELDS: Final = 1000


def part_type(type_: pa.DataType) -> pa.DataType:
    """The type of a value within an array or a struct."""
    if type_ in (DURATION, INTERVAL):
        raise QueryError(
            "there is no INTERVAL within arrays and structs", remedy="make a number of it: epoch(later - earlier)"
        )
    return arrow_type(type_)


def _array(function: Function, arguments: Arguments) -> Expression:
    """[a, b, ..]"""
    type_ = meeting_type(arguments) if arguments else NULL
    if type_ is None:
        raise cannot_mix("an array", arguments)
    type_ = part_type(type_)
    return Call("list_value", tuple(coerce(each, type_) for each in arguments), pa.list_(type_))


def struct_of(names: tuple[str, ...], values: Arguments) -> Expression:
    """{'a': 1, 'b': 2}: names are part of the type."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise QueryError(f"a struct has one field '{name}' at most", remedy="give the fields different names")
        seen.add(name.lower())
    values = tuple(coerce(value, part_type(value.type)) for value in values)
    return Call("struct_pack", values, struct_type(names, [value.type for value in values]))


def _struct(function: Function, arguments: Arguments) -> Expression:
    """As Spark has it: named_struct('a', 1, 'b', 2)."""
    names = [name.value for name in arguments[::2] if isinstance(name, Literal) and isinstance(name.value, str)]
    if len(names) * 2 != len(arguments):
        raise misfit(function, arguments, "write {'a': 1, 'b': 2}: fields have names")
    return struct_of(tuple(names), arguments[1::2])


def field_of(value: Expression, name: str) -> Expression:
    """The field of a struct; names are compared without regard to case, as those of columns are."""
    if not is_struct(value.type):
        raise QueryError(
            f"'{value}' is no STRUCT and has no field '{name}'", remedy="write input.column, or a field of a STRUCT"
        )
    number = next((i for i, each in enumerate(value.type.names) if each.lower() == name.lower()), None)
    if number is None:
        fields = ", ".join(value.type.names)
        raise QueryError(f"there is no field '{name}' in '{value}'", remedy=f"the fields are {fields}")
    field = value.type.field(number)
    return Call("struct_extract", (value, Literal(field.name, VARCHAR)), field.type)


def _field(function: Function, arguments: Arguments) -> Expression:
    value, name = arguments
    if not (isinstance(name, Literal) and isinstance(name.value, str)):
        raise misfit(function, arguments, "write the name of the field as a text, as in s['a']")
    return field_of(value, name.value)


def _element(function: Function, arguments: Arguments) -> Expression:
    """a[1], and s['field'], which is written in the same way."""
    value, index = arguments
    if is_struct(value.type):
        return _field(function, arguments)
    if value.type == NULL:
        return Literal(None, NULL)
    if not is_array(value.type) or not (is_integer(index.type) or index.type == NULL):
        raise misfit(function, arguments, "write array[1] for the first element, struct['name'] for a field")
    return Call("list_extract", (value, coerce(index, BIGINT)), value.type.value_type)


def _need_array(function: Function, arguments: Arguments) -> Expression:
    value = arguments[0]
    if value.type == NULL:
        return coerce(value, pa.list_(INTEGER))
    if not is_array(value.type):
        raise misfit(function, arguments)
    return settle(value)


def array_length(function: Function, arguments: Arguments) -> Expression:
    return Call("array_length", (_need_array(function, arguments),), BIGINT)


def _searched(function: Function, arguments: Arguments) -> Expression:
    """An array and what is looked for in it, as values that can be compared."""
    array, value = _need_array(function, arguments), arguments[1]
    element = array.type.value_type
    type_ = meeting_type((Literal(None, element), value), comparing=True)
    if type_ is None or is_nested(type_) != is_nested(element):
        raise cannot_mix(f"'{function.name}'", (array, value))
    type_ = element if type_ == NULL else type_
    return Call(
        function.name,
        (coerce(array, pa.list_(type_)), coerce(value, type_)),
        BOOLEAN if function.name == "list_contains" else INTEGER,
    )


def _rearranged(function: Function, arguments: Arguments) -> Expression:
    array = _need_array(function, arguments)
    return Call(function.name, (array,), array.type)


def _sliced(function: Function, arguments: Arguments) -> Expression:
    array = _need_array(function, arguments)
    if not all(is_integer(each.type) or each.type == NULL for each in arguments[1:]):
        raise misfit(function, arguments, "write array[2:3], with whole numbers")
    return Call("list_slice", (array, *(coerce(each, BIGINT) for each in arguments[1:])), array.type)


def _concatenated(function: Function, arguments: Arguments) -> Expression:
    """Arrays one behind the other, in a type that holds the elements of all."""
    if not all(is_array(each.type) or each.type == NULL for each in arguments):
        raise misfit(function, arguments)
    type_ = meeting_type(arguments)
    if type_ is None:
        raise cannot_mix(f"'{function.name}'", arguments)
    type_ = pa.list_(INTEGER) if type_ == NULL else type_
    return Call("list_concat", tuple(coerce(each, type_) for each in arguments), type_)


def _appended(function: Function, arguments: Arguments) -> Expression:
    """An array and a value behind it, or a value before it."""
    before = function.name == "list_prepend"
    array, value = reversed(arguments) if before else arguments
    one = _array(function, (value,))
    return _concatenated(function, (one, array) if before else (array, one))


def _extreme(function: Function, arguments: Arguments) -> Expression:
    array = _need_array(function, arguments)
    at = Literal(1 if function.name == "list_min" else -1, BIGINT)
    return Call("list_extract", (Call("list_distinct", (array,), array.type), at), array.type.value_type)


def _series(function: Function, arguments: Arguments) -> Expression:
    """From the first number to the second, by steps of the third."""
    if all(a.type == NULL or is_integer(a.type) for a in arguments):
        numbers = tuple(coerce(a, BIGINT) for a in arguments)
        if len(numbers) == 1:
            numbers = (Literal(0, BIGINT), *numbers)
        step = numbers[2] if len(numbers) > 2 else Literal(1, BIGINT)
        return Call(function.name, (*numbers[:2], step), pa.list_(BIGINT))
    raise misfit(function, arguments, f"write {function.usage} with whole numbers")


def _split(function: Function, arguments: Arguments) -> Expression:
    if any(each.type not in (VARCHAR, NULL) for each in arguments):
        raise misfit(function, arguments, f"write {function.usage}; cast what is no text to VARCHAR")
    return Call("string_split", tuple(coerce(each, VARCHAR) for each in arguments), pa.list_(VARCHAR))


def _joined(function: Function, arguments: Arguments) -> Expression:
    array, separator = _need_array(function, arguments), arguments[1]
    if separator.type not in (VARCHAR, NULL) or not isinstance(separator, Literal):
        raise misfit(function, arguments, "write the separator as a constant text, as in array_to_string(a, ', ')")
    if is_nested(array.type.value_type):
        raise misfit(function, arguments, "its elements are joined as texts: let them be texts or numbers")
    return Call("array_to_string", (cast(array, pa.list_(VARCHAR)), coerce(separator, VARCHAR)), VARCHAR)


NESTED_FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("list_value", "[a, ..]", "the array of these values", 0, None, _array, ("list_pack",)),
    Function("struct_pack", "{'a': x, ..}", "the struct with these fields", 2, MOST_FIELDS, _struct,
             ("named_struct",)),
    Function("list_extract", "array[index]", "the element at an index, the first is 1, the last -1; else NULL", 2, 2,
             _element, ("array_extract",)),
    Function("struct_extract", "struct.field", "the field of a struct; also written struct['field']", 2, 2, _field),
    Function("array_length", "array_length(array)", "number of elements; also len(array)", 1, 1, array_length,
             ("cardinality",)),
    Function("list_contains", "list_contains(array, value)", "whether an element equals the value", 2, 2, _searched,
             ("list_has", "array_has", "array_contains")),
    Function("list_slice", "array[from:to]", "the elements from one number to another; each may be left out", 3, 3,
             _sliced, ("array_slice",)),
    Function("list_concat", "list_concat(array, array)", "the elements of both; NULL has none", 2, None, _concatenated,
             ("list_cat", "array_concat", "array_cat")),
    Function("list_append", "list_append(array, value)", "with the value behind them", 2, 2, _appended,
             ("array_append", "array_push_back")),
    Function("list_prepend", "list_prepend(value, array)", "with the value before them", 2, 2, _appended,
             ("array_prepend",)),
    Function("list_sort", "list_sort(array)", "the elements in order, NULL last", 1, 1, _rearranged, ("array_sort",)),
    Function("list_distinct", "list_distinct(array)", "each value that is not NULL once, in order", 1, 1, _rearranged,
             ("array_distinct",)),
    Function("list_reverse", "list_reverse(array)", "from the last to the first", 1, 1, _rearranged,
             ("array_reverse",)),
    Function("list_min", "list_min(array)", "the least element that is not NULL", 1, 1, _extreme, ("array_min",)),
    Function("list_max", "list_max(array)", "the greatest", 1, 1, _extreme, ("array_max",)),
    Function("range", "range([start,] stop[, step])", "the array of the whole numbers from the start, or 0, to before "
             "the stop", 1, 3, _series),
    Function("generate_series", "generate_series([start,] stop[, step])", "the same with the stop itself", 1, 3,
             _series),
    Function("string_split", "string_split(text, separator)", "the array of the parts between separators, of an empty "
             "one all characters", 2, 2, _split, ("str_split", "string_to_array")),
    Function("array_to_string", "array_to_string(array, separator)", "all elements as one text; NULL is left out", 2,
             2, _joined, ("list_string_agg", "array_join")),
    Function("list_position", "list_position(array, value)", "where the first such element is; else NULL", 2, 2,
             _searched, ("list_indexof", "array_position", "array_indexof")),
)  # fmt: skip
