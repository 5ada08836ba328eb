"""A benchmark run in this process, in the small size that its test gives it, and what it wrote down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import harness


def quick(capsys: pytest.CaptureFixture[str], name: str, *arguments: str, status: int = 0) -> dict[str, Any]:
    assert harness.main([name, "--quick", "--json", *arguments]) == status
    reported: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert list(reported) == ["machine", "settings", "cells", "summary"]
    return reported


def is_chart(path: Path) -> bool:
    return path.read_text(encoding="utf-8").startswith("<?xml")
