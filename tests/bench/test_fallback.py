"""The simulated shortages: what Polynya deploys against the other designs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import fallback
from bench.simulated.designs import DoNothing, FlipPercentage, Minute, RaiseBase, TwoGroups
from bench.simulated.group import BOOT_MINUTES, Group
from bench.simulated.shortages import MINUTES, PLENTY, Outcome, Scenario, run, scenarios
from polynya_constructs.functions.spot_fallback.decision import Mix

SEED = 11
BY_NAME = {scenario.name: scenario for scenario in scenarios(SEED)}


@pytest.mark.parametrize("scenario", BY_NAME.values(), ids=BY_NAME)
def test_raising_the_base_fills_holes_at_the_price_of_the_holes(scenario: Scenario) -> None:
    nothing, flipped, two, raised = (
        run(design, scenario, SEED) for design in (DoNothing, FlipPercentage, TwoGroups, RaiseBase)
    )

    assert raised.killed_healthy_spot == 0
    assert raised.on_demand_at_end == 0
    assert raised.unmet_minutes * 10 < nothing.unmet_minutes
    assert raised.on_demand_minutes <= flipped.on_demand_minutes or scenario.events_lost
    # Against two groups: never much worse in either figure.
    assert raised.unmet_minutes <= two.unmet_minutes * 1.1
    assert raised.on_demand_minutes <= two.on_demand_minutes * 1.1


def test_the_percentage_ends_healthy_nodes_and_hears_no_lost_event() -> None:
    assert run(FlipPercentage, BY_NAME["partial shortage, 4 h"], SEED).killed_healthy_spot > 0
    lost = BY_NAME["events lost"]
    assert run(FlipPercentage, lost, SEED) == run(DoNothing, lost, SEED)


def test_a_deploy_in_between_costs_next_to_nothing() -> None:
    plain = run(RaiseBase, BY_NAME["partial shortage, 4 h"], SEED)
    deployed = run(RaiseBase, BY_NAME["deploy in between"], SEED)

    assert deployed.unmet_minutes == plain.unmet_minutes
    assert deployed.on_demand_minutes - plain.on_demand_minutes < 30


@settings(max_examples=60)
@given(
    room=st.lists(st.sampled_from([0, 1, 3, 5, 8, PLENTY]), min_size=1, max_size=12),
    desired=st.lists(st.integers(0, 10), min_size=1, max_size=8),
    deploys=st.frozensets(st.integers(0, MINUTES - 1), max_size=4),
    seed=st.integers(0, 1000),
)
def test_whatever_happens_no_healthy_spot_node_ends_and_all_is_handed_back(
    room: list[int], desired: list[int], deploys: frozenset[int], seed: int
) -> None:
    def spread(values: list[int]) -> list[int]:
        """Each value for as long as the others, over the first nine hours."""
        return [values[minute * len(values) // 540] for minute in range(540)]

    quiet = MINUTES - 540
    scenario = Scenario(
        "any", spread(room) + [PLENTY] * quiet, spread(desired) + [desired[-1]] * quiet, deploys
    )

    seen = run(RaiseBase, scenario, seed)

    assert (seen.killed_healthy_spot, seen.on_demand_at_end) == (0, 0)


def test_the_simulated_group_is_that_of_the_documentation() -> None:
    """Nothing On-Demand by itself; replacement one at a time, the new node first."""
    group = Group(desired=4, mix=Mix(0, 0))
    for minute in range(10):
        group.step(minute, room=2)
    assert (group.alive(spot=True), group.alive(spot=False)) == (2, 0)
    assert group.failures[-1] == 9

    group.mix = Mix(0, 100)
    steps = [(group.step(minute, room=2), len(group.nodes)) for minute in range(10, 30)]
    assert {size for _, size in steps} == {4, 5}
    ended = [minute for minute, (killed, _) in enumerate(steps) if killed]
    assert [ended[0], ended[1] - ended[0], len(ended)] == [BOOT_MINUTES, BOOT_MINUTES + 1, 2]
    assert group.alive(spot=False) == 4


def test_the_report_has_a_line_for_each_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    fallback.main()

    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.startswith("| ")]) == len(BY_NAME) + 1


def test_a_controller_that_ends_spot_nodes_would_be_seen() -> None:
    """The planted fault: the deficit is added to the base for as long as nodes are missing."""

    class Greedy(RaiseBase):
        def act(self, heard: Minute) -> None:
            group = self.groups[0]
            group.desired = heard.desired
            missing = heard.desired - group.serving(heard.number)
            group.mix = Mix(min(group.mix.base + missing, heard.desired), 0)

    seen: Outcome = run(Greedy, BY_NAME["partial shortage, 4 h"], SEED)

    assert seen.killed_healthy_spot > 0
    assert seen.on_demand_at_end > 0
