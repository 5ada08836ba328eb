"""Frames that lies in files between stages of one machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from transom.core.errors import SparkError
from transom.pipeline.frames import FRAMES, OUT, STORED, Frame, Message, pack, unpack
from transom.runtimes.spark.local_shuffle import LEAST_BYTES, LocalShuffle

LARGE = pack([Frame({"kind": "rows", "text": "x" * LEAST_BYTES})])


def test_large_frames_lies_down_and_the_rest_is_carried(tmp_path: Path) -> None:
    local_shuffle = LocalShuffle(str(tmp_path))
    small, answer = Message(1, 0, FRAMES, b"small"), Message(0, 0, OUT, LARGE)
    assert local_shuffle.lay_down(small) is small and local_shuffle.lay_down(answer) is answer
    laid = local_shuffle.lay_down(Message(1, 0, FRAMES, LARGE))
    assert (laid.fragment, laid.partition, laid.kind) == (1, 0, STORED) and len(laid.blob) < 300
    (part,) = unpack(local_shuffle.pick_up(laid.kind, laid.blob))
    assert part.about["text"] == "x" * LEAST_BYTES
    assert local_shuffle.pick_up(FRAMES, b"small") == b"small"


def test_on_several_machines_everything_is_carried() -> None:
    message = Message(1, 0, FRAMES, LARGE)
    assert LocalShuffle().lay_down(message) is message


def test_where_the_disk_has_no_room_it_is_carried(tmp_path: Path) -> None:
    gone = LocalShuffle(str(tmp_path / "0" / "file"))
    (tmp_path / "0").write_text("in the way")
    message = Message(1, 0, FRAMES, LARGE)
    assert gone.lay_down(message) is message


def test_settled_batches_are_forgotten_and_what_vanishes_is_reported(tmp_path: Path) -> None:
    local_shuffle = LocalShuffle(str(tmp_path))
    laid = local_shuffle.lay_down(Message(1, 0, FRAMES, LARGE))  # of batch 0, as no task is under way
    local_shuffle.forget(0)
    assert local_shuffle.pick_up(laid.kind, laid.blob)
    local_shuffle.forget(1)
    assert os.listdir(tmp_path) == []
    with pytest.raises(SparkError, match="vanished"):
        local_shuffle.pick_up(laid.kind, laid.blob)
