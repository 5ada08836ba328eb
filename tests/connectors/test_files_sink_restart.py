"""What a sink makes of the leavings of a run that died at a bad moment."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from tests.connectors.epochs import commit, prepare
from transom.connectors.files_sink import FileSink
from transom.connectors.open import check_sink
from transom.core.errors import OptionError
from transom.plan.catalogue import SinkDefinition

SCHEMA = pa.schema([("n", pa.int32())])


def sink(path: Path, parts: int = 0) -> FileSink:
    return FileSink({"path": str(path), "format": "csv"}, SCHEMA, parts=parts)


def write(out: FileSink, *numbers: int) -> None:
    out.write(pa.record_batch([pa.array(numbers, pa.int32())], schema=SCHEMA))


def numbers(path: Path) -> list[int]:
    files = sorted(path.glob("[!.]*")) if path.is_dir() else [path]
    return [int(line) for file in files for line in file.read_text().splitlines()[1:]]


@pytest.mark.parametrize("name", ["out.csv", "out"])
def test_what_was_prepared_is_shown_by_the_next_run_that_counts_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    out = sink(path)
    write(out, 1)
    assert (prepare(out), prepare(out), out.parts) == (1, 1, 0)  # the process dies here
    again = sink(path, parts=1)
    write(again, 2)
    again.close()
    assert numbers(path) == [1, 2]


@pytest.mark.parametrize("name", ["out.csv", "out"])
def test_what_was_prepared_is_forgotten_by_one_that_does_not(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    out = sink(path)
    write(out, 1)
    prepare(out)
    again = sink(path)
    write(again, 2)
    again.close()
    assert numbers(path) == [2]


def test_what_is_written_after_prepare_is_another_part(tmp_path: Path) -> None:
    out = sink(tmp_path / "out")
    write(out, 1)
    prepare(out)
    write(out, 2)
    assert prepare(out) == 2
    assert commit(out) == 2
    assert sorted(os.listdir(tmp_path / "out")) == [".transom", "part-000000.csv", "part-000001.csv"]


def test_abandon_keeps_what_was_prepared(tmp_path: Path) -> None:
    out = sink(tmp_path / "out.csv")
    write(out, 1)
    prepare(out)
    out.abort(0)
    sink(tmp_path / "out.csv", parts=1).close()
    assert numbers(tmp_path / "out.csv") == [1]


def test_a_closed_file_is_gone_on_with_even_if_that_dies_too(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    first = sink(path)
    write(first, 1)
    first.close()
    second = sink(path, parts=1)
    write(second, 2)
    assert commit(second) == 2
    write(second, 3)
    prepare(second)  # dies
    third = sink(path, parts=1)  # the second run is forgotten
    write(third, 20)
    prepare(third)  # dies
    fourth = sink(path, parts=2)
    fourth.close()
    assert numbers(path) == [1, 20]
    assert os.listdir(tmp_path) == ["out.csv"]


@pytest.mark.parametrize("moment", ["renamed", "shown", "half removed"])
def test_a_run_that_dies_while_it_makes_one_file(tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(BaseException):
        pass

    def gone(*_: object) -> None:
        raise Gone

    def half(folder: str) -> None:
        os.unlink(os.path.join(folder, "part-000001.csv"))
        raise Gone

    path = tmp_path / "out.csv"
    first = sink(path)
    write(first, 1)
    first.close()
    out = sink(path, parts=1)
    write(out, 2)
    commit(out)
    write(out, 3)
    assert commit(out) == 3
    with monkeypatch.context() as patch:
        if moment == "renamed":
            patch.setattr("transom.connectors.file_target.commit_file", gone)
        else:
            patch.setattr("transom.connectors.file_target.shutil.rmtree", half if moment == "half removed" else gone)
        with pytest.raises(Gone):
            out.close()
    again = sink(path, parts=3)
    write(again, 4)
    again.close()
    assert numbers(path) == [1, 2, 3, 4]
    assert os.listdir(tmp_path) == ["out.csv"]
    write(fresh := sink(path), 9)
    fresh.close()
    assert numbers(path) == [9]


def test_checking_a_sink_touches_nothing(tmp_path: Path) -> None:
    good = SinkDefinition("o", properties={"connector": "files", "path": str(tmp_path / "o.csv")})
    check_sink(good)
    check_sink(SinkDefinition("o", properties={"connector": "memory"}))
    assert os.listdir(tmp_path) == []
    for properties in (
        {"connector": "files"},
        {"connector": "memory", "path": "x"},
        {},
        {"connector": "files", "path": "x"},
    ):
        with pytest.raises(OptionError):
            check_sink(SinkDefinition("o", properties=properties))
