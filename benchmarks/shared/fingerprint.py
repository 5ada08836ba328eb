"""What the paper says of its three older policies: by this, and before the new one is run, the arrival plan is chosen.

| name | what | cases |
| --- | --- | --- |
| mqt_drops | MQT drops in P1, P4, P7, P8 | these |
| mqt_drops_none | and in no other | P2, P3, P5, P6 |
| fifo_drops_none | FIFO never drops: loads under which it does are left to later work (section 7) | P1 .. P8 |
| mandf_below | MandF processes less than MQT or FIFO | P4, P7 |
| pending | processed + dropped < 100 % | P1 .. P8, for each policy |
| mandf_not_below | it is said of P4 and P7 alone, so elsewhere MandF should not fall below | the others; implied |
| mandf_drops | with random windows it is the drops of MandF that vanish (section 6.3.1) | random; implied |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from transom.scheduling.simulation import SimulatedStage

OLDER: Final = ("fifo", "mqt", "mandf")
MQT_DROPS: Final = ("P1", "P4", "P7", "P8")
MANDF_BELOW: Final = ("P4", "P7")
IMPLIED: Final = ("mandf_not_below", "mandf_drops")
_LEAST: Final = 1e-4
"""Shares nearer to each other than this are equal."""


def fingerprint(case: str, last: Mapping[str, SimulatedStage]) -> dict[str, bool]:
    """What is said of a case, and whether it holds, from the last stages of the older policies."""
    fifo, mqt, mandf = (last[name] for name in OLDER)
    below = mandf.processed < max(mqt.processed, fifo.processed) - _LEAST
    if case == "random":
        return {"mandf_drops": mandf.dropped > 0}
    found = {"mqt_drops": mqt.dropped > 0} if case in MQT_DROPS else {"mqt_drops_none": mqt.dropped == 0}
    found["fifo_drops_none"] = fifo.dropped == 0
    found["pending"] = all(stage.ledger.pending > 0 for stage in (fifo, mqt, mandf))
    found |= {"mandf_below": below} if case in MANDF_BELOW else {"mandf_not_below": not below}
    return found


def margin(case: str, last: Mapping[str, SimulatedStage]) -> float:
    """How far the inequalities of a case are from being broken, as a share of all work due."""
    fifo, mqt, mandf = (last[name] for name in OLDER)
    found = [mqt.dropped] if case in MQT_DROPS else []
    if case in MANDF_BELOW:
        found.append(max(mqt.processed, fifo.processed) - mandf.processed)
    return min(found, default=1.0)
