"""What tactics of joins of many inputs are expected to cost, and which is chosen on which machine."""

from __future__ import annotations

import json
from typing import Any

import pytest

from transom.cql.statements import bind_query, parse_statements
from transom.kernels.multiway.cost import TACTICS, Costs, Estimate, costs
from transom.kernels.multiway.join_tree import left_deep
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.multiway.statistics import Machine
from transom.kernels.multiway.tactic import AdaptiveJoinTactic
from transom.kernels.operator import Operator
from transom.plan.catalogue import Catalogue
from transom.planner.explain import explain_json, explain_text
from transom.planner.plan import plan
from transom.planner.statistics import DeclaredStatistics

FAST, SLOW = Machine(cores=48, handover_us=5.0), Machine(cores=2, handover_us=20.0)
MACHINES = (Machine(), SLOW, FAST)


def declared(count: int, arrival: bool, rates: dict[int, float] | None = None) -> Catalogue:
    catalogue = Catalogue()
    for i in range(count):
        options = [f"rate = {(rates or {}).get(i, 20)}", *(["time = 'arrival'"] if arrival else [])]
        time = "" if arrival else ", ts TIMESTAMP, WATERMARK FOR ts AS ts"
        parse_statements(f"CREATE STREAM s{i} (k BIGINT, t VARCHAR{time}) WITH ({', '.join(options)})", catalogue)
    return catalogue


def planned(count: int, machine: Machine, arrival: bool = False, rates: dict[int, float] | None = None,
            more: str = "", chain: bool = False, **options: str) -> Operator:  # fmt: skip
    """Tactics stay as they are, unless the options say otherwise."""
    catalogue = declared(count, arrival, rates)
    catalogue.options |= {"adapt": "off"} | options
    inputs = ", ".join(f"s{i} [1 SECOND]" for i in range(count))
    keys = [f"s{i}.k = s{i + 1}.k" for i in range(count - 1)]
    if chain:
        keys[-1] = f"s{count - 2}.t = s{count - 1}.t"
    query = f"SELECT s0.k, s1.t FROM {inputs} WHERE {' AND '.join(keys)}{more}"
    return plan(bind_query(query, catalogue), catalogue, DeclaredStatistics(catalogue, machine))


def join(root: Operator) -> Operator:
    (operator,) = [each for each in root.walk() if each.tactic.estimates]
    return operator


def chosen(root: Operator) -> str:
    operator = join(root)
    return operator.tactic.name if operator.kind == "MultiwayJoin" else "tree"


@pytest.mark.parametrize("machine", MACHINES, ids=["one core", "two cores", "many cores"])
@pytest.mark.parametrize("arrival", [False, True])
@pytest.mark.parametrize("count", [3, 5, 10, 20])
def test_cheap_probes_need_no_threads(count: int, arrival: bool, machine: Machine) -> None:
    assert not chosen(planned(count, machine, arrival)).startswith("parallel")


@pytest.mark.parametrize("count", [3, 10, 20])
def test_rows_that_come_one_by_one_pay_for_every_join_on_their_way(count: int) -> None:
    price = dict(join(planned(count, SLOW, arrival=True)).tactic.estimates)
    assert chosen(planned(count, SLOW, arrival=True)) == "mjoin"
    assert price["parallel_mjoin"] > price["mjoin"]
    assert price["tree"] > (1.5 if count > 3 else 1) * price["mjoin"]


def test_a_slow_hand_over_makes_threads_dearer_and_cores_make_them_cheaper() -> None:
    def prices(machine: Machine) -> dict[str, float]:
        return dict(join(planned(10, machine, arrival=True)).tactic.estimates)

    slow, quick = prices(Machine(4, 50.0)), prices(Machine(4, 5.0))
    assert all(slow[name] > quick[name] for name in ("parallel_tree", "parallel_mjoin"))
    assert all(slow[name] == quick[name] for name in ("tree", "mjoin"))
    assert prices(Machine(1, 5.0))["parallel_tree"] > quick["parallel_tree"]


def test_predicates_that_cost_much_are_asked_at_once_where_there_are_cores() -> None:
    text = "".join(f" AND upper(s0.t) || s{i}.t LIKE '%a%b%' AND lower(s{i}.t) <> s0.t" for i in range(1, 10))
    with_text = dict(join(planned(10, FAST, arrival=True, more=text)).tactic.estimates)
    assert with_text["parallel_mjoin"] < with_text["mjoin"]


def test_a_fast_stream_and_slow_others_are_joined_by_a_tree() -> None:
    rates = {0: 20_000.0}
    assert chosen(planned(5, SLOW, rates=rates)) == "tree"
    price = dict(join(planned(5, SLOW, rates=rates)).tactic.estimates)
    assert price["tree"] < price["mjoin"]


def test_rows_of_each_input_are_taken_to_look_first_where_they_find_least() -> None:
    """A slow row finds a thousand rows of the fast stream: whoever looks there first makes a thousand tuples of it."""
    price = dict(join(planned(10, SLOW, rates={0: 20_000.0})).tactic.estimates)
    assert price["mjoin"] < 6.0


def test_what_runs_in_one_partition_pays_for_it() -> None:
    partitions = Machine(partitions=8, one_by_one=False)
    assert chosen(planned(4, partitions, chain=True)) == "tree"
    whole, chain = (dict(join(planned(4, partitions, chain=c)).tactic.estimates) for c in (False, True))
    assert chain["mjoin"] > 4 * whole["mjoin"]
    assert chosen(planned(4, Machine(), chain=True)) == "mjoin"


def test_streams_stamped_on_arrival_come_in_batches_on_spark() -> None:
    spark = planned(5, Machine(partitions=2, one_by_one=False), arrival=True)
    assert dict(join(spark).tactic.rests_on)["rows"] == "in batches"
    assert dict(join(planned(5, SLOW, arrival=True)).tactic.rests_on)["rows"] == "one by one"


def test_more_rows_than_can_be_done_make_rows_wait() -> None:
    estimates = {"tree": Estimate(work=100.0, latency=100.0), "mjoin": Estimate(work=50.0, latency=110.0)}
    assert Costs(estimates, True, rate=10.0).cheapest(("tree", "mjoin")) == "tree"
    busy = Costs(estimates, True, rate=9_000.0)
    assert busy.cheapest(("tree", "mjoin")) == "mjoin" and busy.price("tree") > 500


def test_every_tactic_has_an_estimate_of_every_shape() -> None:
    catalogue = declared(4, False)
    for where in ("s0.k = s1.k", "s0.k < s1.k", "s0.k = s1.k AND s2.t = s3.t AND s1.k + s2.k = s3.k", "TRUE"):
        inputs = ", ".join(f"s{i} [1 SECOND]" for i in range(4))
        catalogue.options["multiway"] = "mjoin"
        root = plan(bind_query(f"SELECT s0.k FROM {inputs} WHERE {where}", catalogue), catalogue)
        (node,) = [each.node for each in root.walk() if isinstance(each.node, MultiwayJoin)]
        for one_by_one in (False, True):
            estimated = costs(node, DeclaredStatistics(catalogue).join(node), left_deep([0, 1, 2, 3]), SLOW, one_by_one)
            assert all(0 < estimated.price(name) < float("inf") for name in TACTICS), where


def test_explain_tells_the_estimates_and_what_they_rest_on() -> None:
    root = planned(3, SLOW, rates={1: 40})
    lines = [line.lstrip("├└─ │") for line in explain_text(root).splitlines()]
    at = next(i for i, line in enumerate(lines) if " join mjoin: " in line)
    price = dict(join(root).tactic.estimates)
    assert f"{price['mjoin']:.2g} us a row estimated" in lines[at + 1]
    assert lines[at + 2] == f"not tree: {price['tree']:.2g} us a row estimated, mjoin {price['mjoin']:.2g} us"
    assert [line.split(":")[0] for line in lines[at + 3 : at + 5]] == ["not parallel_tree", "not parallel_mjoin"]
    assert lines[at + 5] == "not adaptive: SET adapt is 'off'"
    assert lines[at + 6] == (
        "estimated from rates 20, 40, 20 rows a second (declared); matches 1 to 2 a probe (assumed); "
        "rows in batches; machine 2 cores, 20 us a hand-over"
    )
    reported: Any = json.loads(json.dumps(explain_json(root)))
    (whole,) = [operator for operator in reported["operators"] if "estimates" in operator]
    assert set(whole["estimates"]["microseconds a row"]) == set(TACTICS)
    assert whole["estimates"]["rests on"]["machine"] == "2 cores, 20 us a hand-over"


def test_tree_and_mjoin_are_left_to_what_comes() -> None:
    root = planned(3, SLOW, adapt="on")
    tactic = join(root).tactic
    assert isinstance(tactic, AdaptiveJoinTactic) and tactic.first == "mjoin" and tactic.watch == "on"
    assert set(tactic.trees) == {((0, 1), 2), ((0, 2), 1), ((1, 2), 0)}
    text, price = explain_text(root), dict(tactic.estimates)
    assert "may change" in text and f"{price['mjoin']:.2g} us a row estimated" in text
    assert f"not tree: {price['tree']:.2g} us a row estimated, adaptive changes to it when it is better" in text
    assert f"not mjoin: {price['mjoin']:.2g} us a row estimated, adaptive begins with it" in text
    fast = join(planned(5, SLOW, rates={0: 20_000.0}, adapt="on")).tactic
    assert isinstance(fast, AdaptiveJoinTactic) and fast.first == "tree" and len(fast.trees) == 1
    chain = join(planned(3, SLOW, chain=True, adapt="on")).tactic
    assert isinstance(chain, AdaptiveJoinTactic) and ((0, 2), 1) not in chain.trees


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"adapt": "off"}, "SET adapt is 'off'"),
        ({"join": "lazy_hash"}, "SET join asks for lazy_hash"),
        ({"lifetimes": "negative"}, "lifetimes are sent as negative tuples"),
    ],
)
def test_what_may_not_change_says_why(how: dict[str, str], reason: str) -> None:
    options: Any = {"adapt": "on"} | how
    tactics = [each.tactic for each in planned(3, SLOW, **options).walk()]
    assert ("adaptive", reason) in [line for tactic in tactics for line in tactic.not_taken]


def test_where_steps_or_partitions_decide_it_stays() -> None:
    one_by_one = dict(join(planned(3, SLOW, arrival=True, adapt="on")).tactic.not_taken)
    assert one_by_one["adaptive"].startswith("rows come one by one")
    partitions = Machine(partitions=8, one_by_one=False)
    spread = dict(join(planned(4, partitions, chain=True, adapt="on")).tactic.not_taken)
    assert spread["adaptive"] == "there is no key of all inputs, so it would run in one partition"


def test_rows_that_are_sealed_by_their_windows_stay_with_a_tree() -> None:
    catalogue = declared(3, False)
    tables = ", ".join(f"TUMBLE(s{i}, ts, 5 SECONDS) AS w{i}" for i in range(2))
    where = "w0.k = w1.k AND w0.window_end = w1.window_end AND w1.k = s2.k"
    query = bind_query(f"SELECT w0.k FROM {tables}, s2 [1 SECOND] WHERE {where}", catalogue)
    joins = [each for each in plan(query, catalogue).walk() if "Join" in each.kind]
    reasons = [line for each in joins for line in each.tactic.not_taken if line[0] == "adaptive"]
    assert reasons == [("adaptive", "joins of two remember nothing of windows that are over")]


def test_a_forced_tactic_and_a_join_of_two_ask_for_no_statistics() -> None:
    class Unasked:
        @property
        def machine(self) -> Machine:
            raise AssertionError

        def join(self, node: MultiwayJoin) -> Any:
            raise AssertionError

    catalogue = declared(3, False)
    two = bind_query("SELECT s0.k FROM s0 [NOW], s1 [NOW] WHERE s0.k = s1.k", catalogue)
    plan(two, catalogue, Unasked())
    catalogue.options["multiway"] = "parallel_mjoin"
    plan(bind_query("SELECT s0.k FROM s0 [NOW], s1 [NOW], s2 [NOW] WHERE s0.k = s1.k", catalogue), catalogue, Unasked())
