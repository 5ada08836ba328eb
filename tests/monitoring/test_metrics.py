"""What Prometheus reads, read by its own client library."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.monitoring.test_snapshot import NOW, made
from transom import Session
from transom.monitoring.metrics import METRICS, metrics_text
from transom.monitoring.snapshot import status_json
from transom.program.latency import Latency

PAGE = Path(__file__).parents[2] / "docs" / "monitoring.md"

Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parsed(text: str) -> Values:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(figures: Values, name: str, **labels: str) -> float:
    return figures[name, tuple(sorted(labels.items()))]


def test_figures_are_those_of_the_status() -> None:
    figures = parsed(metrics_text([status_json(made(latency=Latency(5, 1.0, 2.0, 3.0, 4.0)), now=NOW)]))
    assert value(figures, "transom_input_rows_total", query="alarms", input="smoke", fate="late") == 2
    assert value(figures, "transom_input_rows_total", query="alarms", input="smoke", fate="used") == 5
    assert value(figures, "transom_input_waiting_rows", query="alarms", input="smoke") == 2
    assert value(figures, "transom_progress_lag_seconds", query="alarms") == 300
    assert value(figures, "transom_held_back_seconds", query="alarms", input="smoke") == 240
    assert value(figures, "transom_row_latency_seconds", query="alarms", quantile="0.99") == 2e-6
    operator = {"query": "alarms", "operator": "3", "tactic": "join ring_hash"}
    assert value(figures, "transom_operator_bytes_kept", **operator) == 4096
    assert value(figures, "transom_operator_busy_seconds_total", **operator) == 0.5
    assert value(figures, "transom_query_state", query="alarms", runtime="local", state="running") == 1


def test_every_family_is_declared_with_its_type_even_if_nothing_runs() -> None:
    types = {family.name: family.type for family in text_string_to_metric_families(metrics_text([]))}
    assert types == {metric.name.removesuffix("_total"): metric.kind for metric in METRICS}


def test_counters_are_called_total_and_gauges_are_not() -> None:
    assert all(metric.name.endswith("_total") == (metric.kind == "counter") for metric in METRICS)


def test_a_name_can_hold_anything() -> None:
    name = 'a"b\\c\nd} 1\n# TYPE x counter\nx{q="\u00e9\u2028'
    text = metrics_text([status_json(made(name=name), now=NOW)])
    assert value(parsed(text), "transom_sink_rows_total", query=name) == 4
    assert not re.search("^x", text, re.MULTILINE)
    assert metrics_text([status_json(made(name="half \ud800"), now=NOW)]).encode()


def test_the_page_lists_the_names_and_their_labels() -> None:
    row = re.compile(r"^\| `(transom_\w+)` \| (counter|gauge) \| ([^|]*) \|", re.MULTILINE)
    listed = [
        (name, kind, tuple(labels.replace("`", "").split(", "))) for name, kind, labels in row.findall(PAGE.read_text())
    ]
    assert listed == [(metric.name, metric.kind, metric.labels) for metric in METRICS]


def test_counters_and_labels_go_on_after_a_restart(tmp_path: Path) -> None:
    """The first run ends in the middle; the one that resumes counts on under the same labels."""
    data = tmp_path / "in"
    data.mkdir()
    program = f"""
        CREATE STREAM s (t TIMESTAMP, k VARCHAR, WATERMARK FOR t AS t) WITH (connector = 'files', path = '{data}/');
        CREATE SINK out WITH (connector = 'files', path = '{tmp_path}/out/', format = 'csv');
        INSERT INTO out SELECT k, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k
    """
    figures = []
    for part, rows in (
        ("a", "2024-05-01 00:00:01,x\n2024-05-01 00:00:09,\n"),
        ("b", "2024-05-01 00:00:02,y\n2024-05-01 00:01:30,x\n"),
    ):
        (data / f"{part}.csv").write_text("t,k\n" + rows)
        with Session() as session:
            query = session.start(program, checkpoint=str(tmp_path / "kept"))
            query.await_termination(60)
            session.monitor.look()
            figures.append(parsed(metrics_text(session.monitor.snapshots())))
    first, second = figures
    counters = tuple(metric.name for metric in METRICS if metric.kind == "counter")
    before = {key: figure for key, figure in first.items() if key[0] in counters}
    assert len(before) > 10 and before.keys() <= second.keys()
    assert [key for key, figure in before.items() if second[key] < figure] == []
    assert value(second, "transom_input_read_rows_total", query="out", input="s") == 4
    assert value(second, "transom_input_rows_total", query="out", input="s", fate="late") == 1
