"""EXPLAIN ANALYZE reports by which tactic the slides of a join were made, and what was kept where."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from transom.session import Session

STREAMS = "".join(
    f"""CREATE STREAM {name} (ts TIMESTAMP, k INTEGER, g VARCHAR, WATERMARK FOR ts AS ts)
        WITH (connector = 'generator', rows = 20000, rate = 2000, seed = {seed},
              column.k = 'uniform 0 {{keys}}', column.g = 'text 60');"""
    for seed, name in enumerate("ab", 1)
)
QUERY = """RSTREAM(SELECT a.k, a.g, b.g AS h FROM a [RANGE 4 SECONDS SLIDE 1 SECOND],
    b [RANGE 4 SECONDS SLIDE 1 SECOND] WHERE a.k = b.k)"""


def analyzed(keys: int, spill: Path, **options: str) -> str:
    settings = "".join(f"SET {name} = '{value}';" for name, value in {"spill": str(spill), **options}.items())
    *_, result = Session().execute(f"{STREAMS.format(keys=keys)} {settings} EXPLAIN ANALYZE {QUERY}")
    assert result.text is not None
    return result.text


def slides(text: str) -> dict[str, int]:
    return {how: int(count) for how, count in re.findall(r"((?:one|two)-pass [^:]+): (\d+) slide", text)}


def test_slides_by_tactic(tmp_path: Path) -> None:
    text = analyzed(2_000, tmp_path, slide_join="incremental")
    assert slides(text) == {"one-pass incremental, one-pass merge": 14}
    assert "slides: 14 complete, 0 put off, 0 completed later" in text and "0 written to disk" in text
    text = analyzed(2_000, tmp_path, slide_join="incremental", memory="4 MB")
    assert set(slides(text)) >= {"one-pass incremental, two-pass merge"} and sum(slides(text).values()) == 14
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("speed", "kind"), [("200 KB", "full"), ("100 GB", "incremental")])
def test_hybrid_follows_the_cheaper_one(speed: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results that do not fit, on a disk that is slow or quick; the clock of the disk is not waited for."""
    monkeypatch.setattr("transom.state.spill.SpillStore._waited", _as_declared)
    counts = slides(analyzed(1_000, tmp_path, slide_join="hybrid", memory="4 MB", disk_speed=speed))
    assert sum(counts.values()) == 14
    chosen = sum(count for how, count in counts.items() if kind in how)
    assert chosen >= 8, counts


def _as_declared(store: object, count: int, started: float) -> float:
    return float(count / store._speed)  # type: ignore[attr-defined]
