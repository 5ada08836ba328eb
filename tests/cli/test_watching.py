"""A run that is looked at from outside: over HTTP, in a file, in a log."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from tests.cli.commands import command, environment, outcome, write_project
from tests.monitoring.test_metrics import parsed, value

GROWING = """
CREATE STREAM s (ts TIMESTAMP, k VARCHAR, WATERMARK FOR ts AS ts) WITH (connector = 'files', path = 'data/');
CREATE SINK out WITH (connector = 'files', path = 'answers/', format = 'csv');
INSERT INTO out SELECT k, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k;
"""


def test_the_status_file_and_the_log_say_what_the_summary_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path / "project")
    monkeypatch.chdir(tmp_path)
    options = ("--status", "status.json", "--log", "json", "--log-file", "run.log", "--runtime", "local")
    code, _, err = outcome(capsys, "run", "project/query.cql", *options)
    assert code == 0 and "4 rows out" in err
    (query,) = json.loads((tmp_path / "status.json").read_text())["queries"]
    (of_input,) = query["inputs"]
    assert (query["name"], query["state"], query["rows_out"]) == ("out", "finished", 4)
    assert [of_input[name] for name in ("rows_in", "used", "late", "rejected", "waiting")] == [6, 4, 1, 1, 0]
    lines = [json.loads(line) for line in (tmp_path / "run.log").read_text().splitlines()]
    assert lines[-1]["event"] == "finished" and lines[-1]["rows_in"] == 6
    assert sum(line["batch_rows"] for line in lines if line["event"] == "batch") == 6
    assert not list(tmp_path.glob("*.new"))


def test_a_run_that_fails_is_seen_to_have_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_project(tmp_path / "project")
    (tmp_path / "project" / "answers").write_text("in the way")
    monkeypatch.chdir(tmp_path)
    code, _, err = outcome(capsys, "run", str(path), "--status", "status.json", "--log", "text", "--runtime", "local")
    queries = json.loads((tmp_path / "status.json").read_text())["queries"]
    assert code == 1 and [query["state"] for query in queries] in ([], ["failed"])
    assert "error:" in err and all("answers" in query["error"] for query in queries)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--metrics", "{file}"), "put --metrics behind the query file"),
        (("{file}", "--metrics", "127.0.0.1:99999"), "is no address to listen on"),
        (("{file}", "--status", "nowhere/status.json"), "cannot write the status"),
        (("{file}", "--log-file", "nowhere/run.log"), "cannot write the log"),
    ],
)
def test_what_cannot_be_is_said_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], says: str
) -> None:
    path = str(write_project(tmp_path))
    code, _, err = outcome(capsys, "run", *(option.format(file=path) for option in options), "--runtime", "local")
    assert code in (1, 2) and (says in err or "the following arguments are required" in err)
    assert not (tmp_path / "answers").exists()


@contextmanager
def followed(folder: Path, *options: str, runtime: str = "local") -> Iterator[str]:
    """A run that follows its input; gives where it can be asked, and ends it."""
    (folder / "data").mkdir()
    (folder / "query.cql").write_text(GROWING)
    add_rows(folder, "a", "2024-05-01 00:00:01,x", "2024-05-01 00:00:09,y\\z")
    arguments = command("run", "query.cql", "--runtime", runtime, "--follow", "--metrics=127.0.0.1:0", *options)
    with subprocess.Popen(arguments, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if url := re.search(r"http://[^/]*", line):
                    break
            else:
                raise AssertionError("it does not say where it listens")
            yield url[0]
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)


def add_rows(folder: Path, name: str, *rows: str) -> None:
    (folder / "data" / f".{name}").write_text("ts,k\n" + "".join(f"{row}\n" for row in rows))
    os.rename(folder / "data" / f".{name}", folder / "data" / f"{name}.csv")


def until(happened: Callable[[], Any]) -> None:
    end = time.monotonic() + 600
    while not happened():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.2)


def read(url: str) -> str:
    with urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


def status(url: str) -> Any:
    queries = json.loads(read(url + "/status?query=out"))["queries"]
    return queries[0] if queries else {"rows_in": 0, "operators": []}


@pytest.mark.nightly
@pytest.mark.parametrize("runtime", ["local", "spark"])
def test_a_run_is_seen_while_it_goes_on(tmp_path: Path, runtime: str) -> None:
    """The same figures on both runtimes, rows among them, and after more rows came."""
    with followed(tmp_path, runtime=runtime) as url:
        until(lambda: status(url)["rows_in"] == 2)
        add_rows(tmp_path, "b", "2024-05-01 00:00:05,late", "2024-05-01 00:02:00,x")
        until(lambda: status(url)["rows_in"] == 4)
        seen, figures = status(url), parsed(read(url + "/metrics"))
        assert (seen["state"], seen["runtime"], seen["inputs"][0]["late"]) == ("running", runtime, 1)
        assert value(figures, "transom_input_rows_total", query="out", input="s", fate="late") == 1
        assert value(figures, "transom_sink_rows_total", query="out") == seen["rows_out"] == 4
        assert seen["progress"] == "2024-05-01T00:02:00Z"
        assert value(figures, "transom_batch_seconds", query="out") > 0


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Prometheus: apt-get install prometheus")
def test_prometheus_scrapes_a_run(tmp_path: Path) -> None:
    with followed(tmp_path) as url:
        config = tmp_path / "prometheus.yml"
        target = url.removeprefix("http://")
        config.write_text(
            "global: {scrape_interval: 1s}\n"
            f'scrape_configs: [{{job_name: transom, static_configs: [{{targets: ["{target}"]}}]}}]\n'
        )
        port = free_port()
        arguments = [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={tmp_path / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with subprocess.Popen(arguments, stderr=subprocess.DEVNULL) as prometheus:
            try:
                query = f'transom_input_rows_total{{query="out",fate="used",job="transom",instance="{target}"}}'
                there = f"http://127.0.0.1:{port}/api/v1/query?query={quote(query)}"

                def scraped() -> Any:
                    try:
                        return json.loads(read(there))["data"]["result"]
                    except OSError:
                        return []

                until(lambda: [sample["value"][1] for sample in scraped()] == ["1"])
                add_rows(tmp_path, "b", "2024-05-01 00:02:00,x")
                until(lambda: [sample["value"][1] for sample in scraped()] == ["2"])
            finally:
                prometheus.terminate()


def free_port() -> int:
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        return int(other.getsockname()[1])
