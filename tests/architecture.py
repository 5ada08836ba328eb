"""The plan of the house, and what breaks it: read from the sources with `ast`, without importing them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

PACKAGE: Final = "transom"

FLOORS: Final = (
    {"core"},
    {"plan"},
    {"cql", "planner", "kernels", "state", "connectors", "scheduling"},
    {"pipeline"},
    {"program"},
    {"runtimes.reference", "runtimes.local", "runtimes.spark", "monitoring"},
    {"flight"},
    {"session", "testing"},
    {"cli", "console", "notebook"},
)
"""Imports point down only. Rooms of one floor are strangers to each other."""

ALSO_ALLOWED: Final[dict[tuple[str, str], str]] = {
    ("kernels", "state"): "logic has no memory of its own: it works on the state that is kept beside it",
    ("planner", "kernels"): "a plan is made of tactics, and each is in the folder of its operator",
    ("testing", "session"): "what tests offer to users is made of the public face",
    (PACKAGE, "session"): "the package itself offers the session, and what it gives and raises",
    (PACKAGE, "program"): "as above",
    (PACKAGE, "pipeline"): "as above",
    (PACKAGE, "core"): "as above",
    (PACKAGE, "kernels"): "as above",
    (PACKAGE, "flight"): "as above",
    (PACKAGE, "monitoring"): "as above",
    (PACKAGE, "console"): "as above",
    ("cli", PACKAGE): "the package knows its version",
    ("cli", "console"): "a command opens it",
    ("session", "console"): "`session.console()` opens it, when it is asked for",
    ("console", "session"): "types alone: what it shows is handed to it",
    ("runtimes.spark", PACKAGE): "workers must have the driver's version",
    (PACKAGE, "cli"): "`python -m transom` is the command line",
}
"""Arrows that the floors do not show, each with its reason."""

ONLY: Final[dict[str, set[str]]] = {"runtimes.reference": {"plan", "core"}, "scheduling": {"core"}}
"""Rooms that see less than everything below: the definition must not lean on what it is to judge, and what is done
first is decided by numbers alone, in a simulation as in the engine."""

OWNERS: Final[dict[str, str]] = {
    "sqlglot": "cql",
    "pyspark": "runtimes.spark",
    "duckdb": "runtimes.reference",
    "numba": "kernels",
    "llvmlite": "kernels",
    "confluent_kafka": "connectors",
}
"""Libraries that one room alone may import, but for their types."""

ALSO_OWNED: Final[dict[tuple[str, str], str]] = {
    ("flight", "duckdb"): "whoever asks for an answer by SQL is answered by a database that holds nothing else",
}
"""Libraries that a second room may import, each with its reason."""

EMPTY_NAMES: Final = {"util", "utils", "helper", "helpers", "common", "base", "manager", "managers"}
UNSAFE_MODULES: Final = {"pickle", "cloudpickle", "dill", "shelve", "marshal"}
CONNECTOR_PROTOCOLS: Final = ("Source", "Sink", "TaskWriter", "Connector", "OpenSink")
MOST_PARAMETERS: Final = 12

TYPES: Final = "TYPE_CHECKING"
KERNEL_LINES: Final = ("Meaning:", "Emits:", "Keeps:", "Needs:", "Costs:")


@dataclass
class Module:
    name: str
    path: Path
    tree: ast.Module
    imported: list[Import] | None = field(default=None, repr=False)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All of the tree, walked once for all rules."""
        return tuple(ast.walk(self.tree))

    @property
    def room(self) -> str:
        return room_of(self.name)


def room_of(module: str) -> str:
    """
    >>> room_of("transom.cql.dialect"), room_of("transom.runtimes.local.run"), room_of("transom.__main__")
    ('cql', 'runtimes.local', 'transom')
    """
    parts = module.split(".")
    if len(parts) == 1 or parts[1].startswith("__"):
        return PACKAGE
    return ".".join(parts[1:3]) if parts[1] == "runtimes" else parts[1]


@dataclass(frozen=True)
class Import:
    """`for_types`: under `if TYPE_CHECKING`, so it is never carried out."""

    target: str
    line: int
    for_types: bool


def read_modules(source: Path) -> dict[str, Module]:
    """The modules under a folder that holds the package, by their dotted names."""
    modules = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        modules[name] = Module(name, path, ast.parse(text, str(path)))
    return modules


def imports(module: Module, modules: Mapping[str, Module]) -> list[Import]:
    """All imports, those within functions too. `from a import b` means the module a.b where there is one.

    They are read once for all rules; the modules are the same for all of them.
    """
    if module.imported is None:
        module.imported = _imports(module, modules)
    return module.imported


def _imports(module: Module, modules: Mapping[str, Module]) -> list[Import]:
    types_only = {id(node) for block in module.nodes if _for_types(block) for node in _inside(block)}
    imported = []
    for node in module.nodes:
        for target in _targets(node, module, modules):
            imported.append(Import(target, getattr(node, "lineno", 0), id(node) in types_only))
    return imported


def _for_types(node: ast.AST) -> bool:
    """Only a look at the name: to write the condition of every `if` anew takes seconds."""
    if not isinstance(node, ast.If):
        return False
    return any(isinstance(part, ast.Name | ast.Attribute) and _name(part) == TYPES for part in ast.walk(node.test))


def _name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.If):
        for statement in node.body:
            yield from ast.walk(statement)


def _targets(node: ast.AST, module: Module, modules: Mapping[str, Module]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        start = node.module or ""
        if node.level:
            package = module.name.split(".")
            package = package if module.path.name == "__init__.py" else package[:-1]
            package = package[: len(package) - node.level + 1]
            start = ".".join([*package, *([node.module] if node.module else [])])
        return [f"{start}.{alias.name}" if f"{start}.{alias.name}" in modules else start for alias in node.names]
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
            return [node.args[0].value]
    return []


def _floor(room: str) -> int | None:
    return next((floor for floor, rooms in enumerate(FLOORS) if room in rooms), None)


def _may_see(room: str, other: str) -> bool:
    if room == other or (room, other) in ALSO_ALLOWED:
        return True
    if room in ONLY:
        return other in ONLY[room]
    floor, below = _floor(room), _floor(other)
    return floor is not None and below is not None and below < floor


def wrong_arrows(modules: Mapping[str, Module]) -> list[str]:
    """Imports that point up or to a stranger, libraries outside their room, and modules in no room."""
    wrong = []
    for module in modules.values():
        if module.room not in (PACKAGE, "runtimes") and _floor(module.room) is None:
            wrong.append(f"{module.name}: there is no room '{module.room}'")
        for imported in imports(module, modules):
            library = imported.target.split(".")[0]
            if library == PACKAGE:
                if not _may_see(module.room, room_of(imported.target)):
                    wrong.append(f"{module.name}:{imported.line}: {module.room} may not import {imported.target}")
            elif (
                not imported.for_types
                and OWNERS.get(library, module.room) != module.room
                and (module.room, library) not in ALSO_OWNED
            ):
                wrong.append(f"{module.name}:{imported.line}: {library} is for {OWNERS[library]} alone")
    return wrong


def cycles(modules: Mapping[str, Module]) -> list[str]:
    """Modules that import each other, directly or round a corner; imports for types alone do not count."""
    arrows = {
        name: sorted({each.target for each in imports(module, modules) if not each.for_types} & set(modules) - {name})
        for name, module in modules.items()
    }
    rings: dict[frozenset[str], str] = {}
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> None:
        if name in path:
            ring = path[path.index(name) :]
            rings.setdefault(frozenset(ring), " -> ".join([*ring, name]))
        elif name not in done:
            for target in arrows[name]:
                walk(target, [*path, name])
            done.add(name)

    for name in sorted(modules):
        walk(name, [])
    return sorted(rings.values())


def empty_names(root: Path) -> list[str]:
    """Files and folders whose names say nothing."""
    return [
        f"{path.relative_to(root)}: call it by what it is"
        for path in sorted(root.rglob("*"))
        if (path.is_dir() or path.suffix == ".py") and path.stem.lower().strip("_") in EMPTY_NAMES
    ]


def unsafe_code(modules: Mapping[str, Module]) -> list[str]:
    """Pickle and its like, eval, exec, and anything that asks a shell."""
    wrong = []
    for module in modules.values():
        for imported in imports(module, modules):
            if imported.target.split(".")[0] in UNSAFE_MODULES:
                wrong.append(f"{module.name}:{imported.line}: {imported.target}")
        for node in module.nodes:
            if isinstance(node, ast.Call):
                wrong += [f"{module.name}:{node.lineno}: {what}" for what in _unsafe_call(node)]
    return wrong


def _unsafe_call(node: ast.Call) -> Iterator[str]:
    called = ast.unparse(node.func)
    if called in ("eval", "exec", "os.system", "os.popen"):
        yield called
    for keyword in node.keywords:
        never = isinstance(keyword.value, ast.Constant) and not keyword.value.value
        if keyword.arg in ("shell", "allow_pickle") and not never:
            yield f"{keyword.arg}={ast.unparse(keyword.value)}"


def questioned_connectors(modules: Mapping[str, Module]) -> list[str]:
    """Code outside of their room that asks what class a connector is, or which methods it has: it says itself what it
    can do."""
    classes, members = _connector_classes(modules)
    wrong = []
    for module in modules.values():
        if module.room != "connectors":
            names = _imported_from(module, "transom.connectors")
            for node in module.nodes:
                wrong += [f"{module.name}:{line}: {what}" for line, what in _questions(node, names, classes, members)]
    return wrong


def _connector_classes(modules: Mapping[str, Module]) -> tuple[set[str], set[str]]:
    """The protocols of connectors and all classes that keep them, by name; and what the protocols have."""
    classes, members = set(CONNECTOR_PROTOCOLS), set()
    defined = [
        node
        for module in modules.values()
        if module.room == "connectors"
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
    ]
    while more := {each.name for each in defined if _bases(each) & classes} - classes:
        classes |= more
    for each in defined:
        if each.name in CONNECTOR_PROTOCOLS[:3]:
            members |= {part.name for part in each.body if isinstance(part, ast.FunctionDef)}
            members |= {ast.unparse(part.target) for part in each.body if isinstance(part, ast.AnnAssign)}
    return classes, {name for name in members if not name.startswith("_")}


def _bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).split(".")[-1] for base in node.bases}


def _imported_from(module: Module, package: str) -> set[str]:
    """The names that a module has from a package."""
    return {
        alias.asname or alias.name
        for node in module.nodes
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{package}.")
        for alias in node.names
    }


def _questions(node: ast.AST, names: set[str], classes: set[str], members: set[str]) -> Iterator[tuple[int, str]]:
    """`names` are those that come from the room of the connectors: classes, or modules that have them."""

    def requested(inside: ast.AST) -> Iterator[str]:
        for each in ast.walk(inside):
            words = ast.unparse(each).split(".") if isinstance(each, ast.Name | ast.Attribute) else []
            if words and words[0] in names and words[-1] in classes:
                yield words[-1]

    if isinstance(node, ast.Call) and len(node.args) > 1:
        called, what = ast.unparse(node.func), node.args[1]
        if called in ("isinstance", "issubclass"):
            yield from ((node.lineno, f"{called} of {name}") for name in requested(what))
        if called in ("hasattr", "getattr") and isinstance(what, ast.Constant) and what.value in members:
            yield node.lineno, f"{called} of {what.value}"
    if isinstance(node, ast.MatchClass):
        yield from ((node.lineno, f"case {name}") for name in requested(node.cls))


def crowded_functions(modules: Mapping[str, Module]) -> list[str]:
    """Functions with more parameters than a reader can keep apart; compiled ones take named tuples of arrays."""
    return [
        f"{module.name}:{node.lineno}: {node.name} has more than {MOST_PARAMETERS} parameters"
        for module in modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and len([each for each in _parameters(node) if each not in ("self", "cls")]) > MOST_PARAMETERS
    ]


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    return [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


def unexplained_kernels(modules: Mapping[str, Module]) -> list[str]:
    """Files with a kernel (a class with `start` and `step`) that do not open with the five lines, in their order."""
    return [
        f"{module.name}: its docstring needs the lines {' '.join(KERNEL_LINES)}"
        for module in modules.values()
        if module.room == "kernels" and any(_is_kernel(node) for node in module.tree.body) and not _explained(module)
    ]


def _is_kernel(node: ast.stmt) -> bool:
    if not isinstance(node, ast.ClassDef) or any("Protocol" in ast.unparse(base) for base in node.bases):
        return False
    return {"start", "step"} <= {part.name for part in node.body if isinstance(part, ast.FunctionDef)}


def _explained(module: Module) -> bool:
    lines = (ast.get_docstring(module.tree) or "").splitlines()
    starts = [line.split()[0] for line in lines if line.split()[:1] and line.split()[0] in KERNEL_LINES]
    return tuple(starts) == KERNEL_LINES
