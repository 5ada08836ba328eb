"""Which loops are compiled differently when something changes that is compiled into them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planted.compiled import changed_loops, compiled_name, read_module
from tests.planted.plant import CACHE, Bed

SOURCES = {
    "a": """
LIMIT: Final = 3
@borrowing
def near(x): return x < LIMIT
def told(x): return x
def slot(x): return x
@overload(slot)
def compiled_slot(x): return x
""",
    "b": """
from a import near, told
@jit
def walk(x): return near(x)
@jit
def alone(x): return x
""",
    "c": """
import numpy as np
import a
from b import walk as walked
from a import slot
@inlined
def far(x): return walked(x)
@jit
def placed(x): return slot(x)
""",
}


@pytest.mark.parametrize(
    ("module", "old", "new", "loops"),
    [
        ("a", "LIMIT: Final = 3", "LIMIT: Final = 4", {"a.near", "b.walk", "c.far"}),
        ("a", "x < LIMIT", "x <= LIMIT", {"a.near", "b.walk", "c.far"}),
        ("a", "def told(x): return x", "def told(x): return 1", set()),
        ("a", "def compiled_slot(x): return x", "def compiled_slot(x): return 1", {"a.compiled_slot", "c.placed"}),
        ("b", "def alone(x): return x", "def alone(x): return 1", {"b.alone"}),
        ("b", "walk(x): return near(x)", "walk(x): return 1", {"b.walk", "c.far"}),
    ],
)
def test_what_is_compiled_into_a_loop_changes_it(module: str, old: str, new: str, loops: set[str]) -> None:
    read = {name: read_module(source) for name, source in SOURCES.items()}
    changed = changed_loops(read, module, SOURCES[module].replace(old, new))
    assert {f"{where}.{name}" for where, name in changed} == loops


def test_loops_of_tests_are_thrown_away_as_well(tmp_path: Path) -> None:
    """Else a test goes on with what it compiled before there was a bug."""
    bed = Bed(tmp_path)
    file, test = bed.copy / "src" / "transom" / "a.py", bed.copy / "tests" / "kernels" / "test_a.py"
    loops = {
        file: "@inlined\ndef near(x): return x\n",
        test: "from transom.a import near\n@jit\ndef walk(x): return near(x)\n@jit\ndef alone(x): return x\n",
    }
    for path, source in loops.items():
        path.parent.mkdir(parents=True)
        path.write_text(source, encoding="utf-8")
    cache = bed.copy / CACHE / compiled_name(test.parent)
    cache.mkdir(parents=True)
    for name in ("walk", "alone"):
        (cache / f"test_a.{name}-3.py311.nbi").touch()
    file.write_text("@inlined\ndef near(x): return 1\n", encoding="utf-8")
    bed._throw_away(file, loops[file])
    assert [path.name for path in cache.iterdir()] == ["test_a.alone-3.py311.nbi"]
