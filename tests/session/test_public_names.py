"""What the package offers: every name is exported, documented, typed without Any, and can be had."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import transom
from tests.docs.pages import DOCS
from tests.session import every_call

CLASSES = [getattr(transom, name) for name in transom.__all__]


def methods(class_: type) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The public methods that a class of ours has, with its constructor."""
    for each in class_.__mro__:
        if each.__module__.startswith("transom."):
            (tree,) = ast.parse(inspect.getsource(each)).body
            assert isinstance(tree, ast.ClassDef)
            for part in tree.body:
                if isinstance(part, ast.FunctionDef) and (part.name == "__init__" or not part.name.startswith("_")):
                    yield f"{each.__name__}.{part.name}", part


@pytest.mark.parametrize("class_", CLASSES, ids=transom.__all__)
def test_a_public_class_is_documented_and_has_no_any(class_: type) -> None:
    assert re.search(rf"`{class_.__name__}\b", "".join(page.read_text() for page in DOCS.glob("*.md")))
    assert class_.__doc__
    hints = [*vars(class_).get("__annotations__", {}).values()]
    for name, method in methods(class_):
        assert method.name == "__init__" or ast.get_docstring(method), f"{name} says nothing"
        arguments = [*method.args.args, *method.args.kwonlyargs, method.args.kwarg, method.args.vararg]
        hints += [ast.unparse(each.annotation) for each in arguments if each is not None and each.annotation]
        hints += [ast.unparse(method.returns)] if method.returns is not None else []
    assert not [hint for hint in hints if re.search(r"\bAny\b", str(hint))]


def test_the_program_with_every_call_has_every_call_and_runs(capsys: pytest.CaptureFixture[str]) -> None:
    written = Path(every_call.__file__).read_text(encoding="utf-8")
    foreign = {
        "to_arrow",
        "to_pandas",
        "to_polars",
        "to_spark",
        "schema",
        "table",
        "dead_letters",
    }  # of untyped libraries
    for class_ in (transom.Session, transom.Query, transom.StreamingQuery, transom.Result):
        called = {name for name in vars(class_) if not name.startswith("_")} - foreign - {"so_far"}
        assert {name for name in called if f".{name}" not in written} <= {"close"}, class_
    assert every_call.main()[-1] in ("floors", "again")
    assert "StreamingQuery mine" in capsys.readouterr().out


def test_every_name_is_where_the_package_says() -> None:
    assert sorted(transom.__all__) == transom.__all__ == dir(transom)
    source = Path(transom.__file__).read_text(encoding="utf-8")
    checked = {
        alias.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert set(transom.__all__) <= checked, "type checkers see what Python sees"
    with pytest.raises(AttributeError, match="no 'LocalQuery'"):
        transom.LocalQuery  # type: ignore[attr-defined]  # noqa: B018
