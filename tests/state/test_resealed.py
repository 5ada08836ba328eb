"""A checkpoint that was changed and sealed anew is rejected, or runs on wrongly; it never ends the process."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from tests.profile import NIGHTLY
from tests.state.resealed import PLANS

TRIALS = 100 if NIGHTLY else 1
CHILDREN = 2 if NIGHTLY else 1


@pytest.mark.nightly
@pytest.mark.parametrize("child", range(CHILDREN))
def test_a_resealed_state_is_rejected_or_runs_on(child: int) -> None:
    """Some trials of every plan; which ones does not depend on anything."""
    names = list(PLANS)[child::CHILDREN]
    command = [sys.executable, "-m", "tests.state.resealed", str(child), str(TRIALS), *names]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=3600 if NIGHTLY else 600, check=False)
    assert ran.returncode == 0, f"{ran.stdout.splitlines()[-1:]}\n{ran.stderr[-4000:]}"
    outcomes = Counter(line.rpartition(": ")[2] for line in ran.stdout.splitlines())
    assert sum(outcomes.values()) == TRIALS * len(names)
    assert outcomes["refused"] > sum(outcomes.values()) // 3, outcomes
