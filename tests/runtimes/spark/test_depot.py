"""Cargo that lies in files between stages of one machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from transom.core.errors import SparkError
from transom.pipeline.cargo import CARGO, OUT, STORED, CargoPart, Parcel, pack, unpack
from transom.runtimes.spark.depot import LEAST_BYTES, Depot

LARGE = pack([CargoPart({"kind": "rows", "text": "x" * LEAST_BYTES})])


def test_large_cargo_lies_down_and_the_rest_is_carried(tmp_path: Path) -> None:
    depot = Depot(str(tmp_path))
    small, answer = Parcel(1, 0, CARGO, b"small"), Parcel(0, 0, OUT, LARGE)
    assert depot.lay_down(small) is small and depot.lay_down(answer) is answer
    laid = depot.lay_down(Parcel(1, 0, CARGO, LARGE))
    assert (laid.fragment, laid.bucket, laid.kind) == (1, 0, STORED) and len(laid.blob) < 300
    (part,) = unpack(depot.pick_up(laid.kind, laid.blob))
    assert part.about["text"] == "x" * LEAST_BYTES
    assert depot.pick_up(CARGO, b"small") == b"small"


def test_on_several_machines_everything_is_carried() -> None:
    parcel = Parcel(1, 0, CARGO, LARGE)
    assert Depot().lay_down(parcel) is parcel


def test_where_the_disk_has_no_room_it_is_carried(tmp_path: Path) -> None:
    gone = Depot(str(tmp_path / "0" / "file"))
    (tmp_path / "0").write_text("in the way")
    parcel = Parcel(1, 0, CARGO, LARGE)
    assert gone.lay_down(parcel) is parcel


def test_settled_batches_are_forgotten_and_what_vanishes_is_told(tmp_path: Path) -> None:
    depot = Depot(str(tmp_path))
    laid = depot.lay_down(Parcel(1, 0, CARGO, LARGE))  # of batch 0, as no task is under way
    depot.forget(0)
    assert depot.pick_up(laid.kind, laid.blob)
    depot.forget(1)
    assert os.listdir(tmp_path) == []
    with pytest.raises(SparkError, match="vanished"):
        depot.pick_up(laid.kind, laid.blob)
