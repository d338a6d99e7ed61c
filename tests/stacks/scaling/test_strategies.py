"""Each strategy drives a group: its alarms, policies and functions as they were synthesized.

The group is one of a stand-in for AWS; time, figures and work are simulated (`simulated.py`).
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from polynya.cluster.control.own_landing import own_landing
from polynya.engine.backlog import REMOTE_WORK_SECONDS
from polynya.model.names import S3Location
from polynya_constructs.cluster.strategies import STRATEGIES, Signal
from polynya_constructs.functions.wake.own_landing import OwnLanding, parsed
from tests.aws import aws_clients
from tests.cluster.fakes import wanted
from tests.stacks.deploying.metric_math import expressions
from tests.stacks.house_rules import Template, resources
from tests.stacks.scaling.metric_values import invented_zeros, value_of
from tests.stacks.scaling.simulated import BOOT_MINUTES, LANDING, Minute, SimulatedCluster
from tests.stacks.synthesis import ROOT, Assembly

pytestmark = pytest.mark.synth

LOW_COST, LOW_LATENCY = "clustered/Cluster-cheap", "borrowed/Cluster-quick"
CONSISTENT, FIXED = "clustered/Cluster-steady", "prod/Cluster-main"
HOUR = 3600.0
AS_ON_AWS: dict[str, Any] = {"boot": 6, "agents_late": 2}
"""Minutes: the middle of the four to eight of docs/deploy.md, and those of a log's metrics."""


@pytest.fixture
def cluster(assembly: Assembly) -> Iterator[Callable[..., SimulatedCluster]]:
    with aws_clients() as client:
        yield lambda stack, curve, template=None, **more: SimulatedCluster(
            client, template or assembly.templates[stack], curve, **more
        )


def a_little_then_much(minute: int) -> float:
    """Ten seconds of work; four hours of it at once; a trickle; each after a pause."""
    if 500 <= minute < 560:
        return 2.0
    return {30: 10.0, 120: 4 * HOUR}.get(minute, 0.0)


def a_working_day(minute: int) -> float:
    """As much as two and a half nodes can do, for three hours."""
    return 150.0 if 30 <= minute < 210 else 0.0


def sizes(minutes: list[Minute]) -> list[int]:
    return [one.size for one in minutes]


def test_low_cost_goes_to_zero_and_comes_back(
    cluster: Callable[..., SimulatedCluster],
) -> None:
    simulated = cluster(LOW_COST, a_little_then_much)

    minutes = simulated.run(640)

    size = sizes(minutes)
    assert set(size[:30]) == {0}
    # A node comes at once, does the little there is, and goes.
    assert size[30] == 1
    assert minutes[30 + BOOT_MINUTES].backlog == 0
    assert (max(size[30:120]), size[119]) == (1, 0)
    # Four hours: nodes are added while each has more than half an hour to do; then all go.
    assert size[120] == 1
    assert 2 <= max(size[120:400]) <= 6
    assert size[499] == 0
    assert minutes[499].backlog == 0
    # The last node stays while a trickle lands.
    assert set(size[500:560]) == {1}
    assert size[-1] == 0
    assert simulated.group.ended_while_booting == 0


def test_low_cost_keeps_one_node_while_a_service_works_for_it(
    cluster: Callable[..., SimulatedCluster],
) -> None:
    def at_work(minute: int) -> bool:
        return 33 <= minute < 120

    kept = sizes(cluster(LOW_COST, a_little_then_much, away=at_work).run(119))

    # Without it, it is gone by then: see above.
    assert set(kept[30:]) == {1}


def test_to_wait_for_a_service_keeps_one_node_and_adds_none() -> None:
    steps = [step for one in STRATEGIES.values() for step in one.steps]
    idle = [step.threshold for step in steps if step.signal is Signal.IDLENESS]
    grow = [step.threshold for step in steps if step.signal is Signal.BACKLOG_PER_NODE]
    targets = [one.tracking.target_seconds for one in STRATEGIES.values() if one.tracking]

    assert max(idle) < REMOTE_WORK_SECONDS < 2 * min(idle)
    assert min([*targets, *grow]) >= REMOTE_WORK_SECONDS


def test_an_empty_cluster_has_figures_while_its_first_node_boots(
    cluster: Callable[..., SimulatedCluster],
) -> None:
    simulated = cluster(LOW_COST, a_little_then_much)

    minutes = simulated.run(123)

    def figure(name: str, statistic: str, minute: int) -> float | None:
        metric = {
            "Namespace": "Polynya",
            "MetricName": name,
            "Dimensions": [{"Name": "Cluster", "Value": simulated.group.name}],
        }
        return simulated.metrics.at(metric, statistic, minute, now=999)

    empty = [minute for minute, one in enumerate(minutes) if one.serving == 0]
    assert {0, 31, 32, 110, 121, 122} <= set(empty)
    known = [minute for minute in empty if figure("BacklogSeconds", "Sum", minute) is not None]
    # Where nothing waits nothing is published, and nothing is paid.
    assert known == [31, 32, 121, 122]
    for minute in known:
        # What landed in this minute is counted in the next one. Nothing ever waited for a node, so
        # the speed is a guess, half of what it is.
        waited = minutes[minute - 1]
        assert figure("BacklogSeconds", "Sum", minute) == pytest.approx(2 * waited.backlog)
        assert figure("OldestUnmergedAge", "Maximum", minute) == waited.age + 60


def per_node(minutes: list[Minute]) -> list[float]:
    return [one.backlog / max(one.serving, 1) for one in minutes]


def changes(minutes: list[Minute]) -> int:
    return sum(before != after for before, after in itertools.pairwise(sizes(minutes)))


@pytest.mark.parametrize(
    ("stack", "most_changes", "backlog", "age", "most"),
    [(LOW_COST, 6, 3330, 24, 3), (LOW_LATENCY, 6, 1128, 7, 4), (CONSISTENT, 8, 228, 3, 6)],
)
def test_a_working_day_costs_as_much_delay_and_as_many_changes_as_the_page_says(
    cluster: Callable[..., SimulatedCluster],
    stack: str,
    most_changes: int,
    backlog: float,
    age: int,
    most: int,
) -> None:
    minutes = cluster(stack, a_working_day, **AS_ON_AWS).run(240)

    assert round(max(per_node(minutes))) == backlog
    assert max(one.age for one in minutes) == age * 60
    assert changes(minutes) == most_changes
    assert max(sizes(minutes)) == most
    assert sizes(minutes)[-1] == min(sizes(minutes))
    page = (ROOT / "docs" / "cluster.md").read_text()
    assert f"| {backlog:,} s, oldest data {age} minutes | {most} | {most_changes} |" in page


@pytest.mark.parametrize("stack", [LOW_LATENCY, CONSISTENT])
def test_a_steady_load_keeps_the_nodes_that_it_needs(
    cluster: Callable[..., SimulatedCluster], stack: str
) -> None:
    """Three nodes are 83 % busy; without a backlog, yet two would be too few."""
    minutes = cluster(stack, a_working_day, **AS_ON_AWS).run(211)

    assert set(sizes(minutes)[90:]) == {3}
    assert max(per_node(minutes)[90:]) < 60


@pytest.mark.parametrize("stack", [LOW_LATENCY, CONSISTENT])
def test_a_group_that_removes_nodes_for_want_of_a_backlog_swings(
    cluster: Callable[..., SimulatedCluster], assembly: Assembly, stack: str
) -> None:
    """The fault of before: the target, which sees no backlog of nodes that keep up, removes too."""
    swings = planted(assembly.templates[stack], '"DisableScaleIn": true', '"DisableScaleIn": false')

    assert changes(cluster(stack, a_working_day, swings, **AS_ON_AWS).run(240)) > 20


def test_without_a_cooldown_nodes_go_for_figures_of_the_larger_group(
    cluster: Callable[..., SimulatedCluster], assembly: Assembly
) -> None:
    """The planted fault: the alarm stays on for minutes, and asks again in each of them."""
    hasty = planted(assembly.templates[LOW_LATENCY], '"Cooldown": "300"', '"Cooldown": "0"')

    assert changes(cluster(LOW_LATENCY, a_working_day, hasty, **AS_ON_AWS).run(240)) > 20


def test_consistent_low_latency_adds_nodes_when_data_gets_old_though_little_waits(
    cluster: Callable[..., SimulatedCluster], assembly: Assembly
) -> None:
    """Here without its target: only the age speaks, of which it adds two nodes, then four."""
    template = planted(assembly.templates[CONSISTENT], '"TargetValue": 90', '"TargetValue": 1e9')

    size = sizes(cluster(CONSISTENT, lambda minute: 130.0, template).run(120))

    steps = [after - before for before, after in itertools.pairwise(size) if after > before]
    assert steps[0] == 2


def test_no_scaling_changes_nothing_whatever_waits(
    cluster: Callable[..., SimulatedCluster],
) -> None:
    simulated = cluster(FIXED, a_little_then_much)

    minutes = simulated.run(190)

    assert simulated.group.asked == []
    assert set(sizes(minutes)) == {1}
    assert max(one.age for one in minutes) > HOUR


def planted(template: Template, before: str, after: str) -> Template:
    """The template with another metric math."""
    text = json.dumps(template)
    assert before in text
    found: Template = json.loads(text.replace(before, after))
    return found


def test_a_first_node_that_is_slow_to_come_is_not_ended_for_the_little_that_waits(
    cluster: Callable[..., SimulatedCluster], assembly: Assembly
) -> None:
    def ended(template: Template, boot: int = 25) -> int:
        simulated = cluster(
            LOW_COST, a_little_then_much, template, boot=boot, removes_while_booting=True
        )
        simulated.run(60)
        simulated.group.remove()
        return simulated.group.ended_while_booting

    template = assembly.templates[LOW_COST]
    assert ended(template) == 0
    # The fault of before: the inner IF has no value, of which the outer one makes a 0.
    right = "IF(FILL(backlog, -1) >= 0 AND FILL(nodes, -1) > 0, IF("
    nested = "IF(FILL(backlog, -1) >= 0 AND FILL(nodes, -1) >= 0, IF(nodes > 0, IF("
    hasty = planted(
        planted(template, right, nested), "86400, backlog / nodes))", "86400, backlog / nodes)))"
    )
    assert ended(hasty) > 0


def for_tasks(*folders: str) -> OwnLanding:
    """What the function knows of a cluster whose tasks read these folders of the bucket."""
    tasks = [wanted(folder).task for folder in folders]
    document = own_landing(S3Location(LANDING), tasks)
    assert document is not None
    return parsed(document.encoded(), LANDING)


def test_clusters_of_one_bucket_neither_wake_each_other_nor_keep_each_other_awake(
    cluster: Callable[..., SimulatedCluster], assembly: Assembly
) -> None:
    """100,000 objects land for one of three, then its trickle; another one has just worked."""
    text = json.dumps(assembly.templates[LOW_COST])

    def lands(minute: int) -> dict[str, int]:
        if minute > 30:
            return {"orders": 3}
        return {25: {"web": 1}, 30: {"orders": 100_000}}.get(minute, {})

    def simulated(folder: str, curve: Callable[[int], float]) -> list[int]:
        template = json.loads(text.replace("polynya-clustered-cheap", f"polynya-{folder}"))
        one = cluster(
            LOW_COST,
            curve,
            template,
            lands=lands,
            folder=folder,
            own=for_tasks(folder),
            **AS_ON_AWS,
        )
        return sizes(one.run(150))

    orders = simulated("orders", lambda minute: {30: 1200.0}.get(minute, 1.0 * (minute > 30)))
    web = simulated("web", lambda minute: 10.0 if minute == 25 else 0.0)
    stock = simulated("stock", lambda _: 0.0)

    assert (set(orders[:30]), set(orders[30:])) == ({0}, {1})
    # Its own object woke it; 15 minutes without one after its boot, and it goes.
    assert (set(web[25:40]), set(web[60:])) == ({1}, {0})
    assert set(stock) == {0}


def test_a_function_that_fails_has_an_alarm_in_its_place(
    cluster: Callable[..., SimulatedCluster],
) -> None:
    simulated = cluster(LOW_COST, a_little_then_much, fails=lambda _: True, **AS_ON_AWS)

    minutes = simulated.run(60)

    assert sizes(minutes)[30:36] == [0, 0, 0, 0, 1, 1]
    assert minutes[45].backlog == 0


def test_work_without_a_node_gets_one_though_nothing_lands(
    cluster: Callable[..., SimulatedCluster],
) -> None:
    """Spot has no node for 25 minutes, and somebody sets the group to zero meanwhile."""

    def landed_then_emptied(minute: int) -> float:
        if minute == 45:
            name = {"AutoScalingGroupName": simulated.group.name}
            simulated.group.set_desired_capacity(**name, DesiredCapacity=0)
            simulated.group.now(minute)
        return a_little_then_much(minute)

    simulated = cluster(LOW_COST, landed_then_emptied, boot=25)
    minutes = simulated.run(80)

    assert minutes[45].size == 1
    assert minutes[-1].backlog == 0


def test_no_expression_of_a_template_makes_a_zero_of_what_is_missing(assembly: Assembly) -> None:
    found = {
        f"{path}/{name}: {zero}"
        for path, template in assembly.templates.items()
        for name, expression, ids in expressions(template)
        for zero in invented_zeros(expression, ids)
    }
    assert found == set()
    # The fault of before.
    nested = "IF(FILL(nodes, -1) >= 0, IF(nodes > 0, backlog / nodes))"
    assert list(invented_zeros(nested, ["nodes", "backlog"]))


def test_a_sum_that_counts_one_node_only_would_be_seen(
    cluster: Callable[..., SimulatedCluster], assembly: Assembly
) -> None:
    """The planted fault: the busiest node stands for all."""
    template = planted(assembly.templates[CONSISTENT], '"Stat": "Sum"', '"Stat": "Maximum"')

    minutes = cluster(CONSISTENT, a_working_day, template).run(240)

    assert max(per_node(minutes)[40:210]) > 2 * 90


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a + b", 3.0),
        ("a / b", None),
        ("a / IF(b > 0, b, 1)", 3.0),
        ("FILL(none, -1) >= 0 AND a > 0", 0.0),
        ("IF(none > 0, a)", None),
        ("IF(a > 0, none)", 0.0),
        ("IF(a > 0, none, a)", 0.0),
        ("IF(a > 0, IF(b > 0, a))", 0.0),
        ("IF(b > 0, a, none)", None),
        ("IF(FILL(none, 1) > 0, a, b)", 3.0),
        ("none", None),
        ("none + a", 3.0),
        ("IF(a > 2 OR b > 2, 86400, a)", 86400.0),
    ],
)
def test_metric_math_is_read_as_cloudwatch_does(expression: str, value: float | None) -> None:
    assert value_of(expression, {"a": 3.0, "b": 0.0, "none": None}) == value


def test_a_record_that_waits_in_a_topic_starts_a_node_within_a_minute(
    cluster: Callable[..., SimulatedCluster],
) -> None:
    simulated = cluster(LOW_COST, nothing, records=lambda minute: {30: 5, 200: 1}.get(minute, 0))

    size = sizes(simulated.run(280))

    assert set(size[:30]) == {0}
    assert size[30] == 1
    # The node lands it, copies it, and goes; the next record starts the next one.
    assert (set(size[30:45]), size[199], size[200], size[-1]) == ({1}, 0, 1, 0)
    assert simulated.group.ended_while_booting == 0


def test_where_nothing_waits_no_node_starts(cluster: Callable[..., SimulatedCluster]) -> None:
    assert set(sizes(cluster(LOW_COST, nothing).run(180))) == {0}


def test_records_that_trickle_keep_the_last_node(cluster: Callable[..., SimulatedCluster]) -> None:
    """What a node lands counts as landed: else it would go, and be started again."""
    simulated = cluster(LOW_COST, nothing, records=lambda minute: int(30 <= minute < 150))

    assert set(sizes(simulated.run(150))[30:]) == {1}


def test_a_schedule_that_is_due_starts_a_node_once(
    cluster: Callable[..., SimulatedCluster],
) -> None:
    size = sizes(cluster(LOW_COST, nothing, due=60).run(240))

    assert (set(size[:60]), size[60], set(size[120:])) == ({0}, 1, {0})


def test_brokers_that_do_not_answer_start_no_node_and_what_waits_is_found_later(
    cluster: Callable[..., SimulatedCluster],
) -> None:
    simulated = cluster(
        LOW_COST,
        nothing,
        records=lambda minute: int(minute == 10),
        silent=lambda minute: minute < 60,
    )

    size = sizes(simulated.run(80))

    assert (set(size[:60]), size[60]) == ({0}, 1)


def test_a_cluster_that_has_never_been_there_is_started_and_not_over_and_over(
    cluster: Callable[..., SimulatedCluster],
) -> None:
    size = sizes(cluster(LOW_COST, nothing, reads_from=None).run(240))

    assert size[0] == 1
    assert set(size[60:]) == {0}


def test_without_looks_a_record_starts_no_node(
    cluster: Callable[..., SimulatedCluster], assembly: Assembly
) -> None:
    """The planted fault: the clock of the function is off."""
    template = copy.deepcopy(assembly.templates[LOW_COST])
    for rule in resources(template, "AWS::Events::Rule").values():
        if "looks at the sources" in rule["Description"]:
            rule["State"] = "DISABLED"

    simulated = cluster(LOW_COST, nothing, template, records=lambda minute: int(minute == 10))

    assert set(sizes(simulated.run(60))) == {0}


def nothing(_minute: int) -> float:
    """No work lands but that of the sources."""
    return 0.0
