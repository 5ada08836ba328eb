"""What the README says is true as far as it can be tried."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from transom.cli.main import main
from transom.connectors.connector import Opening, SinkDeclaration
from transom.connectors.open import open_sink_of, open_source
from transom.cql.statements import parse_statements
from transom.plan.catalogue import Catalogue, CreateStatement, InsertStatement, SinkDefinition, StreamDefinition

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_its_query_can_be_bound_and_its_files_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (query,) = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)
    stream, sink, insert = parse_statements(query, Catalogue())
    assert isinstance(stream, CreateStatement)
    assert isinstance(sink, CreateStatement)
    assert isinstance(insert, InsertStatement)
    assert isinstance(stream.definition, StreamDefinition)
    assert isinstance(sink.definition, SinkDefinition)
    folder = tmp_path / "trades"
    folder.mkdir()
    (folder / "monday.csv").write_text("symbol,price,ts\nA,1.5,2024-05-01 10:00:00\n", encoding="utf-8")
    assert open_source(stream.definition).read({}, 10).rows.to_pylist()[0]["price"] == 1.5
    declared = SinkDeclaration(sink.definition.name, sink.definition.properties)
    open_sink_of(sink.definition, declared)(Opening(insert.query.schema.arrow())).close()
    assert (tmp_path / "averages.csv").read_text(encoding="utf-8") == "symbol,average\n"


def test_its_query_answers_its_rows_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (query,) = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)
    _, _, rest = README.partition("| `trades/monday.csv` |")
    lines = [line.split("|") for line in rest.partition("\n\n")[0].splitlines()[2:]]
    given = [row for cells in lines for row in re.findall("`(.*?)`", cells[1])]
    answer = [row for cells in lines for row in re.findall("`(.*?)`", cells[3])]
    assert len(given) == 2 and len(answer) == 6
    (tmp_path / "trades").mkdir()
    (tmp_path / "trades" / "monday.csv").write_text("\n".join(["symbol,price,ts", *given]) + "\n", encoding="utf-8")
    (tmp_path / "averages.cql").write_text(query, encoding="utf-8")
    assert main(["run", "averages.cql", "--runtime", "local"]) == 0
    assert (tmp_path / "averages.csv").read_text(encoding="utf-8").splitlines()[1:] == answer


def test_its_targets_are_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"make ([a-z]+)", README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    assert {"demo", "test", "check", "bench"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_demo_shows_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    assert main(["demo"]) == 0
    said = capsys.readouterr().out.splitlines()
    for line in filter(None, shown.splitlines()):
        assert line in said
