"""The eight cases of adMandF: which beta comes next (paper 2, section 5.3 and figure 4).

| method, rate | load | case | beta |
| --- | --- | --- | --- |
| FIFO, high | rising | 1 | beta_now: surely FIFO |
| FIFO, high | none | 2 | beta_now, which is 0: MQT could not cope |
| FIFO, low | falling | 3 | beta_now: a load that falls on is for MQT |
| FIFO, low | none | 4 | 0.01: on to MQT |
| MQT, high | rising | 5 | beta_now: easily on to FIFO |
| MQT, high | none | 6 | 0.02: MQT copes |
| MQT, low | falling | 7 | beta_now: MQT copes well |
| MQT, low | none | 8 | 0.03: surely MQT |

The load rises when beta_next > beta_now, falls when beta_next < beta_now, and there is none when beta_now = 0. Case 3
is missing in the scan of the paper and made by symmetry.
"""

from __future__ import annotations

from dataclasses import dataclass

from transom.scheduling.load import LoadMethod


@dataclass(frozen=True)
class Trend:
    """The method in use, whether the rate will be high, the beta that would have been right and the one foreseen."""

    method: LoadMethod
    high: bool
    beta_now: float
    beta_next: float


def next_beta(trend: Trend) -> tuple[int, float]:
    """The number of the case and its beta; case 0, with beta_next, is none of them.

    >>> next_beta(Trend(LoadMethod.MQT, False, 0.0, 0.0))
    (8, 0.03)
    """
    none = trend.beta_now == 0
    rising, falling = trend.beta_next > trend.beta_now, trend.beta_next < trend.beta_now
    if trend.method == LoadMethod.FIFO and trend.high:
        if none:
            return 2, trend.beta_now
        if rising:
            return 1, trend.beta_now
    elif trend.method == LoadMethod.FIFO:
        if none:
            return 4, 0.01
        if falling:
            return 3, trend.beta_now
    elif trend.high:
        if none:
            return 6, 0.02
        if rising:
            return 5, trend.beta_now
    else:
        if none:
            return 8, 0.03
        if falling:
            return 7, trend.beta_now
    return 0, trend.beta_next
