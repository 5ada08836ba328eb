"""Which loops there are, and for which arguments they were compiled.

`python -m tests.kernels.loops` writes that down, for all loops that were compiled since they were changed: it is what
`transom compile` compiles. Of the others it keeps what it had.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from numba.core.dispatcher import Dispatcher

import transom
from transom.kernels.compiling import LOOPS, Loops, describe, known_loops

SOURCES = Path(transom.__file__).parent


def all_loops() -> Iterator[tuple[str, str, Any]]:
    """Module, name and loop, of all that are compiled."""
    for path in sorted(SOURCES.rglob("*.py")):
        if "@jit" in (text := path.read_text(encoding="utf-8")) or "@inlined" in text:
            module = ".".join(("transom", *path.relative_to(SOURCES).with_suffix("").parts))
            for name, value in vars(import_module(module)).items():
                if isinstance(value, Dispatcher) and value.__module__ == module:
                    yield module, name, value


def compiled_loops(known: Loops) -> Loops:
    """With the types of the arguments for which they are kept, or else were known."""
    loops: Loops = {}
    for module, name, loop in all_loops():
        kept = loop._cache._cache_file._load_index()  # which Numba shows to nobody else
        described = ([describe(given) for given in key[0]] for key in kept)
        whole = [[type_ for type_ in types if type_ is not None] for types in described if None not in types]
        signatures = whole or known.get(module, {}).get(name, [])
        if signatures:
            loops.setdefault(module, {})[name] = sorted(signatures, key=json.dumps)
    return loops


def text_of(loops: Loops) -> str:
    """A line for each signature."""
    modules = []
    for module, named in loops.items():
        lines = [
            f'    "{name}": [\n' + ",\n".join(f"      {json.dumps(s)}" for s in signatures) + "\n    ]"
            for name, signatures in named.items()
        ]
        modules.append(f'  "{module}": {{\n' + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(modules) + "\n}\n"


if __name__ == "__main__":
    LOOPS.write_text(text_of(compiled_loops(known_loops())), encoding="utf-8")
