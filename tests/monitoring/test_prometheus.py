"""Prometheus itself scrapes a run; it is not everywhere."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from transom import Session

PROMETHEUS = shutil.which("prometheus")
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(PROMETHEUS is None, reason="there is no prometheus (on Debian: apt-get install prometheus)"),
]


def test_prometheus_reads_a_run(tmp_path: Path) -> None:
    with Session() as session:
        rows: list[dict[str, Any]] = [{"t": f"2024-05-01 10:00:0{i}", "a": i} for i in range(9)] + [{"t": None, "a": 9}]
        session.stream("s", rows, time="t")
        server = session.serve_metrics("127.0.0.1:0")
        name = "überall heiß"
        session.start("SELECT a FROM s [RANGE 1 MINUTE]", name=name, follow=True).await_progress("2024-05-01 10:00:07")
        config = tmp_path / "prometheus.yml"
        target = server.url.removeprefix("http://")
        config.write_text(
            "global: {scrape_interval: 1s}\n"
            f"scrape_configs: [{{job_name: transom, static_configs: [{{targets: ['{target}']}}]}}]\n"
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        assert PROMETHEUS is not None
        process = subprocess.Popen(
            [
                PROMETHEUS,
                f"--config.file={config}",
                f"--storage.tsdb.path={tmp_path / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stderr=subprocess.DEVNULL,
        )
        try:
            samples = asked(port, "sum by (query, input, fate) (transom_input_rows_total)", 60)
            fates = {sample["metric"]["fate"]: float(sample["value"][1]) for sample in samples}
            assert fates == {"used": 8, "late": 0, "rejected": 1}  # the last row waits for what else is of its instant
            assert {sample["metric"]["query"] for sample in samples} == {name}
            assert asked(port, 'transom_query_state{state="running"}', 20)[0]["value"][1] == "1"
            assert asked(port, "up", 20)[0]["value"][1] == "1"
        finally:
            process.terminate()
            process.wait(30)


def asked(port: int, query: str, seconds: float) -> list[Any]:
    """What Prometheus says of a query, as soon as it says something."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urlopen(f"http://127.0.0.1:{port}/api/v1/query?query={quote(query)}", timeout=5) as answer:
                samples: list[Any] = json.load(answer)["data"]["result"]
        except OSError:
            samples = []
        if samples or time.monotonic() > end:
            return samples
        time.sleep(0.5)
