"""Bugs of arrays, structs, UNNEST, instants and JSON."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

NESTED: Final = (
    Bug(
        "null_is_joined_as_a_text",
        "kernels/scalar/nested_values.py",
        "[each for each in parts if each is not None]",
        "[each or '' for each in parts]",
        "array_to_string puts a separator where an element is NULL",
    ),
    Bug(
        "unnest_loses_open_ends",
        "kernels/unnest/unnest.py",
        "rows.te[which], rows.open_id[which], rows.frontier",
        "rows.te[which], np.full(len(which), -1), rows.frontier",
        "the elements of a row that a row-count window ends stay forever",
    ),
    Bug(
        "unnest_counts_departures_by_rows",
        "kernels/unnest/unnest.py",
        "int(np.searchsorted(which, rows.departed))",
        "min(rows.departed, len(which))",
        "as negative tuples some elements arrive that should depart",
    ),
    Bug(
        "numbers_of_elements_from_0",
        "kernels/nested.py",
        "np.repeat(offsets[:-1], counts) + 1",
        "np.repeat(offsets[:-1], counts)",
        "WITH ORDINALITY calls the first element 0, and NULL",
    ),
    Bug(
        "negative_floats_within_arrays",
        "kernels/nested.py",
        "np.where(high & _SIGN, high ^ _SIGN, ~high)",
        "high ^ _SIGN",
        "a negative DOUBLE in an array comes out as another number",
    ),
    Bug(
        "the_last_of_two_names_in_json",
        "kernels/scalar/json_values.py",
        "next((each for key, each in value if key == name), _NOTHING)",
        "next((each for key, each in reversed(value) if key == name), _NOTHING)",
        "of a name that an object has twice the path finds the last",
    ),
    Bug(
        "offsets_added_instead_of_taken_off",
        "kernels/scalar/read_text.py",
        'local - ahead if match[9] == "+" else local + ahead',
        'local + ahead if match[9] == "+" else local - ahead',
        "a text with an offset is an instant as far away on the other side of UTC",
    ),
)
