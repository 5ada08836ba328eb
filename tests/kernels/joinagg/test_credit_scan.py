"""The paper's TC against the definition on every snapshot."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.joinagg.join_snapshots import CUTS, EXTREMES, SUMS, check, relations, spec_of
from tests.profile import examples
from transom.kernels.joinagg.credit_scan import CreditScanKernel


@settings(max_examples=examples(by_day=30, at_night=300))
@given(st.data(), CUTS, st.sampled_from([(None, 2), ("text", 2), ("integer", 2), ("both", 3)]), st.booleans())
def test_every_snapshot_of_the_join_is_aggregated(
    data: st.DataObject, cuts: list[int], join: tuple[str | None, int], restart: bool
) -> None:
    kind, inputs = join
    spec = spec_of(kind, inputs, (), (*SUMS, *EXTREMES))
    check(CreditScanKernel, spec, data.draw(relations(kind, inputs, rows=6)), cuts, restart)
