"""What `transom compile` compiles: the list follows the loops."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.kernels.loops import all_loops, text_of
from transom.cli import compile_command
from transom.cli.main import main
from transom.kernels import compiling
from transom.kernels.compiling import LOOPS, describe, known_loops, type_of
from transom.kernels.spread import deal


def test_the_list_is_that_of_the_loops() -> None:
    there = {(module, name): loop for module, name, loop in all_loops()}
    known = {(module, name): types for module, loops in known_loops().items() for name, types in loops.items()}
    assert known.keys() <= there.keys(), "make loops"
    assert {module for module, _ in there} == known_loops().keys(), "run the tests of a new module, and then make loops"
    for name, signatures in known.items():
        takes = len(inspect.signature(there[name].py_func).parameters)
        assert {len(types) for types in signatures} == {takes}, f"{name}: run its tests, and then make loops"
        for types in signatures:
            assert [describe(type_of(described)) for described in types] == types
    assert text_of(known_loops()) == LOOPS.read_text(encoding="utf-8")


def test_the_command_compiles_what_is_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    types = ["uint64 1 C", "int64"]
    older = ["int64"]
    listed = {"transom.kernels.spread": {"deal": [older, types, types], "gone": [types]}}
    monkeypatch.setattr(compiling, "known_loops", lambda: listed)
    monkeypatch.setattr(compile_command, "ProcessPoolExecutor", lambda count, mp_context: ThreadPoolExecutor(count))
    assert main(["compile", "--runtime", "local", "--cores", "2"]) == 0
    assert tuple(map(type_of, types)) in deal.signatures  # type: ignore[attr-defined]
    assert capsys.readouterr().err.splitlines() == [
        "transom: compiling 4 loops in 2 processes, once on a machine: a minute or two",
        "transom: 4 of 4 loops are compiled",
    ]
