"""What Numba has compiled: taken along to another folder, and thrown away where a bug changes it.

Numba compiles a loop anew when its own file changes, but not when the file of something changes that it calls.
"""

from __future__ import annotations

import ast
import hashlib
import shutil
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

COMPILED: Final = {"jit", "borrowing", "inlined", "overload"}
Definition: TypeAlias = tuple[str, str]
"""A module, and a name that is defined in it, outside of everything."""


def take_compiled(cache: Path, of: Path, into: Path, to: Path) -> None:
    """What was compiled from the sources of one checkout, for the same files in another: Numba knows folders by their
    paths, and files by their times."""
    for folder in {path.parent for path in (of / "src").rglob("*.py")}:
        compiled = cache / compiled_name(folder)
        if compiled.exists():
            shutil.copytree(compiled, into / compiled_name(to / folder.relative_to(of)))


def compiled_name(folder: Path) -> str:
    """The folder of a cache in which Numba keeps what it compiled from the files of a folder."""
    return f"{folder.name}_{hashlib.sha1(str(folder).encode(), usedforsecurity=False).hexdigest()}"


@dataclass(frozen=True)
class Module:
    """What a source defines that can be in a loop, each with the names that it uses; and where names come from."""

    uses: dict[str, set[str]] = field(default_factory=dict)
    loops: set[str] = field(default_factory=set)
    texts: dict[str, str] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)


@cache
def read_module(source: str) -> Module:
    module = Module()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                module.imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            continue
        loop = isinstance(node, ast.FunctionDef) and bool(COMPILED & _names(*node.decorator_list))
        if isinstance(node, ast.FunctionDef) and not loop:
            continue
        for name in _defined(node):
            module.uses[name] = _names(node)
            module.texts[name] = ast.dump(node)
            if isinstance(node, ast.FunctionDef):
                module.loops.add(name)
                for replaced in _names(*node.decorator_list) - COMPILED:  # loops call it by this name
                    module.uses[replaced] = {name}
    return module


def changed_loops(modules: dict[str, Module], module: str, source: str) -> set[Definition]:
    """Loops that are compiled differently when a module has this source: its own that are different, and all into
    which something different is compiled: a function or a constant."""
    before, after = modules[module], read_module(source)
    names = before.texts.keys() | after.texts.keys()
    changed = {f"{module}.{name}" for name in names if before.texts.get(name) != after.texts.get(name)}
    while True:
        more = changed | {
            f"{user}.{name}"
            for user, read in modules.items()
            if (here := _reached(user, read, changed))
            for name, uses in read.uses.items()
            if uses & here
        }
        if more == changed:
            break
        changed = more
    return {(user, name) for user, read in modules.items() for name in read.loops if f"{user}.{name}" in changed}


def _reached(module: str, read: Module, changed: set[str]) -> set[str]:
    """By which names a module knows what changed; of a module that it imports as a whole, by that of the module."""
    own = {name for name in read.uses if f"{module}.{name}" in changed}
    parents = {name.rpartition(".")[0] for name in changed}
    return own | {name for name, origin in read.imported.items() if origin in changed or origin in parents}


def _defined(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [name for target in targets for name in sorted(_names(target))]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _names(*nodes: ast.AST) -> set[str]:
    return {inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name)}
