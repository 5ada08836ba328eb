"""The house stands as it is drawn; and each rule is shown to catch what it is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests import architecture
from tests.architecture import Module, read_modules

ROOT = Path(__file__).parents[1]
RULES: list[Callable[[Mapping[str, Module]], list[str]]] = [
    architecture.wrong_arrows,
    architecture.cycles,
    architecture.unsafe_code,
    architecture.questioned_connectors,
    architecture.unexplained_kernels,
    architecture.crowded_functions,
]


@cache
def sources() -> dict[str, Module]:
    return read_modules(ROOT / "src")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_sources_keep_the_rule(rule: Callable[[Mapping[str, Module]], list[str]]) -> None:
    modules = sources()
    assert len(modules) > 20
    assert rule(modules) == []


@pytest.mark.parametrize("folder", ["src", "benchmarks", "tests"])
def test_names_say_something(folder: str) -> None:
    assert architecture.empty_names(ROOT / folder) == []


# --- the rules can fail ----------------------------------------------------------------------------------------------


def tree(folder: Path, files: dict[str, str]) -> dict[str, Module]:
    for name, text in files.items():
        path = folder / "transom" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read_modules(folder)


ROOMS = {
    "__init__.py": "",
    "core/__init__.py": "",
    "core/time.py": "",
    "plan/algebra.py": "",
    "cql/parse.py": "",
    "planner/join.py": "",
    "kernels/join/ring_hash.py": "",
    "state/codec.py": "",
    "connectors/files.py": "",
    "scheduling/policy.py": "",
    "pipeline/driver.py": "",
    "runtimes/__init__.py": "",
    "runtimes/reference/evaluate.py": "",
    "runtimes/local/run.py": "",
    "session.py": "",
    "testing.py": "",
    "cli/main.py": "",
}


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("plan/algebra.py", "from transom.core.time import FOREVER"),
        ("plan/algebra.py", "from transom.core import time"),
        ("plan/algebra.py", "from ..core import time"),
        ("cql/parse.py", "import transom.plan.algebra\nimport sqlglot.expressions"),
        ("kernels/join/ring_hash.py", "from transom.state.codec import x\nimport numba"),
        ("pipeline/driver.py", "from transom.kernels.join import ring_hash\nfrom transom.connectors import files"),
        ("pipeline/driver.py", "from transom.scheduling.policy import x"),
        ("scheduling/policy.py", "from transom.core.time import x"),
        ("runtimes/reference/evaluate.py", "from transom.plan import algebra\nimport duckdb"),
        ("runtimes/local/run.py", "from transom.pipeline.driver import x"),
        ("testing.py", "from transom.session import x"),
        ("cli/main.py", "from transom.session import x\nfrom transom.runtimes.local import run"),
        ("__init__.py", "from transom.session import Session"),
    ],
)
def test_right_arrows_pass(tmp_path: Path, file: str, text: str) -> None:
    assert architecture.wrong_arrows(tree(tmp_path, ROOMS | {file: text})) == []


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("core/time.py", "from transom.plan import algebra", "core may not import transom.plan.algebra"),
        ("core/time.py", "from ..plan.algebra import Node", "core may not import transom.plan.algebra"),
        ("core/time.py", "def f():\n    import transom.plan.algebra", "core may not import transom.plan.algebra"),
        ("plan/algebra.py", "import transom.cql.parse", "plan may not import transom.cql.parse"),
        ("cql/parse.py", "from transom.planner.join import x", "cql may not import transom.planner.join"),
        ("state/codec.py", "from transom.kernels.join import ring_hash", "state may not import transom.kernels"),
        (
            "kernels/join/ring_hash.py",
            "from transom.planner import join",
            "kernels may not import transom.planner.join",
        ),
        ("connectors/files.py", "from transom.state import codec", "connectors may not import transom.state.codec"),
        (
            "runtimes/reference/evaluate.py",
            "from transom.kernels.join import ring_hash",
            "may not import transom.kernels",
        ),
        ("runtimes/reference/evaluate.py", "import transom.pipeline.driver", "may not import transom.pipeline.driver"),
        ("scheduling/policy.py", "from transom.plan import algebra", "scheduling may not import transom.plan.algebra"),
        ("scheduling/policy.py", "import transom.state.codec", "scheduling may not import transom.state.codec"),
        ("runtimes/local/run.py", "from transom.runtimes.reference import evaluate", "runtimes.local may not import"),
        ("pipeline/driver.py", "from transom.runtimes.local.run import x", "pipeline may not import"),
        ("session.py", "from transom.cli.main import main", "session may not import transom.cli.main"),
        ("session.py", "import importlib\nimportlib.import_module('transom.cli.main')", "session may not import"),
        ("plan/algebra.py", "if TYPE_CHECKING:\n    from transom.cql import parse", "plan may not import"),
        ("core/time.py", "import transom", "core may not import transom"),
        ("plan/algebra.py", "import sqlglot", "sqlglot is for cql alone"),
        ("session.py", "from duckdb import connect", "duckdb is for runtimes.reference alone"),
        ("runtimes/local/run.py", "def f():\n    import pyspark.sql", "pyspark is for runtimes.spark alone"),
        ("pipeline/driver.py", "from numba import njit", "numba is for kernels alone"),
        ("cellar/wine.py", "", "there is no room 'cellar'"),
        ("stray.py", "", "there is no room 'stray'"),
    ],
)
def test_wrong_arrows_are_caught(tmp_path: Path, file: str, text: str, says: str) -> None:
    (wrong,) = architecture.wrong_arrows(tree(tmp_path, ROOMS | {file: text}))
    assert says in wrong


def test_cycles_are_caught_also_inside_functions(tmp_path: Path) -> None:
    modules = tree(
        tmp_path,
        {
            "plan/a.py": "from transom.plan.b import x",
            "plan/b.py": "def late():\n    from transom.plan import c",
            "plan/c.py": "from .a import y\nfrom transom.core import time",
            "core/time.py": "",
        },
    )
    assert architecture.cycles(modules) == ["transom.plan.a -> transom.plan.b -> transom.plan.c -> transom.plan.a"]


def test_an_import_for_types_alone_makes_no_cycle(tmp_path: Path) -> None:
    modules = tree(
        tmp_path,
        {
            "plan/a.py": "from transom.plan.b import x",
            "plan/b.py": "if TYPE_CHECKING:\n    from transom.plan.a import y",
        },
    )
    assert architecture.cycles(modules) == []


@pytest.mark.parametrize("name", ["plan/utils.py", "helpers/x.py", "plan/_common.py", "base.py", "kernels/manager.py"])
def test_empty_names_are_caught(tmp_path: Path, name: str) -> None:
    tree(tmp_path, {name: ""})
    assert len(architecture.empty_names(tmp_path)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from cloudpickle import dumps",
        "eval('1')",
        "exec('x = 1')",
        "import os\nos.system('ls')",
        "subprocess.run('ls', shell=True)",
        "subprocess.run('ls', shell=flag)",
        "np.load(f, allow_pickle=True)",
    ],
)
def test_unsafe_code_is_caught(tmp_path: Path, text: str) -> None:
    assert len(architecture.unsafe_code(tree(tmp_path, {"state/codec.py": text}))) == 1


def test_safe_code_passes(tmp_path: Path) -> None:
    text = "connection.eval('x')\nsubprocess.run(['ls'], shell=False)\nre.compile('x')"
    assert architecture.unsafe_code(tree(tmp_path, {"state/codec.py": text})) == []


CONNECTORS = {
    "connectors/connector.py": "class Source(ABC):\n    distributed: bool = False\n    def plan(self): ...\n"
    "class Sink(ABC):\n    def prepare(self): ...\n",
    "connectors/files.py": "class FileSource(Source): ...\nclass Rejected: ...",
    "connectors/tape.py": "from transom.connectors import files\nclass TapeSource(files.FileSource): ...",
}


FROM_CONNECTORS = """
from transom.connectors import Sink, files
from transom.connectors.connector import Source
from transom.connectors.files import FileSource
from transom.connectors.tape import TapeSource
"""


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(source, Source)",
        "isinstance(source, FileSource)",
        "isinstance(source, list | files.FileSource)",
        "isinstance(source, (int, TapeSource))",
        "issubclass(kind, Sink)",
        "hasattr(source, 'plan')",
        "getattr(source, 'distributed', False)",
        "match source:\n    case TapeSource():\n        pass",
    ],
)
def test_whoever_asks_a_connector_what_it_is_is_caught(tmp_path: Path, text: str) -> None:
    text = f"{FROM_CONNECTORS}\n{text}"
    files = CONNECTORS | {"connectors/open.py": text, "runtimes/local/run.py": text}
    (wrong,) = architecture.questioned_connectors(tree(tmp_path, files))
    assert wrong.startswith("transom.runtimes.local.run:")


def test_other_questions_pass(tmp_path: Path) -> None:
    text = "from transom.cql.parse import Source\nisinstance(text, Source)\nisinstance(x, syntax.Sink)\n"
    text += "from transom.connectors.files import Rejected\nisinstance(row, Rejected)\n"
    text += "hasattr(kernel, 'check')\nif source.distributed: source.plan()"
    assert architecture.questioned_connectors(tree(tmp_path, CONNECTORS | {"session.py": text})) == []


KERNEL = "class Ring:\n    def start(self): ...\n    def step(self, state, inputs, step): ...\n"


@pytest.mark.parametrize(
    ("docstring", "wrong"),
    [
        ("Title.\n\nMeaning: a\n    more\nEmits: b\nKeeps: c\nNeeds: d\nCosts: e\n", 0),
        ("Title.\n\nMeaning: a\nEmits: b\nKeeps: c\nCosts: e\n", 1),
        ("Title.\n\nEmits: b\nMeaning: a\nKeeps: c\nNeeds: d\nCosts: e\n", 1),
        ("Title.", 1),
    ],
)
def test_kernels_that_do_not_explain_themselves_are_caught(tmp_path: Path, docstring: str, wrong: int) -> None:
    files = {"kernels/join/ring.py": f'"""{docstring}"""\n{KERNEL}', "kernels/join/hashing.py": "x = 1"}
    assert len(architecture.unexplained_kernels(tree(tmp_path, files))) == wrong


def test_the_protocol_of_kernels_is_no_kernel(tmp_path: Path) -> None:
    files = {"kernels/kernel.py": KERNEL.replace("Ring", "Kernel(Protocol)"), "plan/other.py": KERNEL}
    assert architecture.unexplained_kernels(tree(tmp_path, files)) == []


@pytest.mark.parametrize(("count", "wrong"), [(12, 0), (13, 1)])
def test_functions_with_too_many_parameters_are_caught(tmp_path: Path, count: int, wrong: int) -> None:
    names = [f"a{i}" for i in range(count)]
    text = f"class C:\n    def f(self, {', '.join(names[:-1])}, *, {names[-1]}): ...\n"
    assert len(architecture.crowded_functions(tree(tmp_path, {"kernels/join/ring.py": text}))) == wrong
