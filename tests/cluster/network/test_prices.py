"""What machines cost: asked once an hour, kept through outages and restarts, unknown with a why."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from polynya.cluster.network.documents import PriceReport
from polynya.cluster.network.prices import NodePrice, machines_to_ask, price_of, with_answers
from polynya.model.errors import DependencyError
from tests.cluster.network.given import NOW, Network

A, B = ("m7g.large", "eu-1a"), ("m7g.large", "eu-1b")
HOUR = timedelta(hours=1)
DOWN = DependencyError("POLYNYA-AWS-003", "no answer")


def told(spot: float | None = 0.03) -> PriceReport:
    found = {} if spot is None else {A: spot}
    return with_answers(None, [A], found, {"m7g.large": 0.08}, NOW)


def failed(report: PriceReport | None, after: timedelta) -> PriceReport:
    return with_answers(report, [A], DOWN, DOWN, NOW + after)


@pytest.mark.parametrize(
    ("report", "after", "asked"),
    [
        (None, timedelta(), {A, B}),
        (told(), timedelta(minutes=59), {B}),
        (told(), HOUR, {A, B}),
        (failed(None, timedelta()), timedelta(minutes=59), {B}),
    ],
)
def test_each_machine_is_asked_about_once_an_hour(
    report: PriceReport | None, after: timedelta, asked: set[tuple[str, str]]
) -> None:
    assert machines_to_ask(report, [A, B], NOW + after) == asked


@pytest.mark.parametrize(
    ("report", "on_demand", "after", "price"),
    [
        (told(), False, HOUR, NodePrice(0.03, NOW)),
        (told(), True, HOUR, NodePrice(0.08, NOW)),
        (failed(told(), HOUR), False, 2 * HOUR, NodePrice(0.03, NOW)),
        (failed(told(), HOUR), False, 25 * HOUR, NodePrice(unknown=str(DOWN), since=NOW)),
        (failed(None, HOUR), True, HOUR, NodePrice(unknown=str(DOWN), since=NOW + HOUR)),
        (
            told(None),
            False,
            HOUR,
            NodePrice(unknown="AWS tells no price of m7g.large in eu-1a", since=NOW),
        ),
        (None, False, HOUR, NodePrice(unknown="no network agent has asked AWS for prices")),
        (PriceReport(), False, HOUR, NodePrice(unknown="AWS was not asked yet")),
    ],
)
def test_a_price_is_known_or_says_why_not_and_since_when(
    report: PriceReport | None, on_demand: bool, after: timedelta, price: NodePrice
) -> None:
    assert price_of(report, *A, on_demand=on_demand, now=NOW + after) == price


def test_a_machine_outside_of_ec2_has_no_price() -> None:
    assert price_of(told(), "", "", on_demand=True, now=NOW).unknown is not None


def test_the_trouble_began_with_the_first_question_that_failed() -> None:
    twice = failed(failed(told(), HOUR), 2 * HOUR)
    again = with_answers(twice, [A], {A: 0.05}, {"m7g.large": 0.08}, NOW + 3 * HOUR)

    assert (twice.trouble, twice.since) == (str(DOWN), NOW + HOUR)
    assert (again.trouble, again.since, again.machines[0].spot) == ("", None, 0.05)


def with_machines(network: Network) -> Network:
    assert network.groups.now is not None
    network.groups.now = replace(network.groups.now, machines=frozenset({A, B}))
    return network


def test_the_network_agent_asks_hourly_and_a_restart_is_no_reason_to_ask() -> None:
    network = with_machines(Network())
    network.turns(60, seconds=60)
    network.boot()
    network.turns(2, seconds=30)
    assert len(network.prices.asked) == 2

    report = network.sign().prices
    assert report is not None
    assert [(one.zone, one.spot, one.on_demand) for one in report.machines] == [
        ("eu-1a", 0.03, 0.08),
        ("eu-1b", 0.04, 0.08),
    ]


def test_prices_that_cannot_be_asked_disconnect_nobody() -> None:
    network = with_machines(Network())
    network.prices.down = DOWN
    network.turns(10)

    sign = network.sign()
    assert sign.state == "connected"
    assert sign.prices is not None
    assert (sign.prices.since, "no answer" in sign.prices.trouble) == (NOW, True)
