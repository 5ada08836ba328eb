"""Each idiom of another system is accepted, or its message names it and says what to write instead."""

from __future__ import annotations

import pytest

from tests.cql.idioms import DECLARED, IDIOMS, LATER
from transom.core.errors import QueryError
from transom.cql.statements import parse_statements
from transom.plan.catalogue import Catalogue


def test_there_are_many() -> None:
    assert len({text for text, _ in IDIOMS + LATER}) == len(IDIOMS + LATER) >= 180


@pytest.mark.parametrize(("text", "phrase"), IDIOMS + LATER)
def test_an_idiom_is_accepted_or_names_itself(text: str, phrase: str | None) -> None:
    catalogue = Catalogue()
    parse_statements(DECLARED, catalogue)
    if phrase is None:
        parse_statements(text, catalogue)
        return
    with pytest.raises(QueryError) as caught:
        parse_statements(text, catalogue)
    error = caught.value
    assert phrase in error.what
    assert error.remedy and "see the list of functions" not in error.remedy
    assert error.span is not None
    assert error.span.length < len(text), "the whole of it is underlined"
    assert "is not expected here" not in error.what
