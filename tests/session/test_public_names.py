"""What the package offers: every name is exported, documented, typed without Any, and can be had."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import transom
from tests.docs.pages import DOCS
from tests.session import every_call

CLASSES = [getattr(transom, name) for name in transom.__all__]

UNTYPED = {"to_arrow", "to_pandas", "to_polars", "to_spark", "schema", "table", "dead_letters", "shed_rows", "loads"}
"""What is given in the types of libraries that have none: the program has them as rows."""

MADE_BY_US = {"of", "so_far", "check", "leave_behind", "finish", "united", "start", "look", "token", "feed", "wait"}
"""For those who make such an object, in our own house."""

WHERE_IT_RUNS = {"runtime", "spark", "cores", "within"}


SOURCES = Path(transom.__file__).parent


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


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
    for class_ in CLASSES:
        names = {name for name in [*vars(class_), *vars(class_).get("__annotations__", {})] if not name.startswith("_")}
        names -= UNTYPED | MADE_BY_US
        assert not {name for name in names if not re.search(rf"\.{name}\b", written)}, class_
    for class_ in (transom.Session, transom.Query, transom.StreamingQuery):
        options = {each.arg for _, method in methods(class_) for each in method.args.kwonlyargs} - WHERE_IT_RUNS
        assert not {name for name in options if f"{name}=" not in written}, class_
    assert every_call.main()[-1] in ("floors", "again", "both")
    assert "StreamingQuery mine" in capsys.readouterr().out


@pytest.mark.parametrize("class_", CLASSES, ids=transom.__all__)
def test_what_a_public_class_gives_is_public_too(class_: type) -> None:
    """A caller can name the types of what he is given. Types of other libraries are written with their module."""
    ours = {node.name for path in SOURCES.rglob("*.py") for node in parsed(path).body if isinstance(node, ast.ClassDef)}
    hints = [str(hint) for hint in vars(class_).get("__annotations__", {}).values()]
    hints += [ast.unparse(method.returns) for _, method in methods(class_) if method.returns is not None]
    named = {name for hint in hints for name in re.findall(r"(?<![\w.])\w+", hint)}
    assert named & ours <= set(transom.__all__)


def test_a_session_has_no_attributes_but_its_own() -> None:
    assert not [name for name in vars(transom.Session()) if not name.startswith("_")]


def test_every_name_is_where_the_package_says() -> None:
    assert sorted(transom.__all__) == transom.__all__ == dir(transom)
    source = Path(transom.__file__).read_text(encoding="utf-8")
    checked = {
        alias.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert set(transom.__all__) <= checked, "type checkers see what Python sees"
    with pytest.raises(AttributeError, match="no 'LocalQuery'"):
        transom.LocalQuery  # type: ignore[attr-defined]  # noqa: B018
