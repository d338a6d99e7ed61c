"""What an instance is told about its end, with a metadata service on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from polynya.cluster.spot import (
    ADDRESS,
    NOTICE_SECONDS,
    Advice,
    Imds,
    SpotAction,
    SpotNotices,
    SpotWatcher,
    advise,
    imds_at,
    is_on_demand,
    machine_type,
)
from polynya.model.errors import ConfigError, DependencyError, PolynyaError
from polynya.store.clock import Retry
from polynya.testing.fake_imds import FakeImds, fake_imds
from polynya.testing.fakes import FakeClock


@pytest.fixture
def service() -> Iterator[FakeImds]:
    with fake_imds() as service:
        yield service


class Watched:
    """A watcher, and what it told."""

    def __init__(self, imds: Imds) -> None:
        self.advice: list[Advice] = []
        self.errors: list[PolynyaError] = []
        self.watcher = SpotWatcher(imds, self.advice.append, self.errors.append)


def test_a_notice_drains_and_says_until_when() -> None:
    advice = advise(SpotNotices(action='{"action": "terminate", "time": "2026-01-01T00:02:00Z"}'))

    reason = "Spot interruption notice: terminate at 2026-01-01T00:02:00Z"
    assert advice == Advice(SpotAction.DRAIN, reason, NOTICE_SECONDS)


@pytest.mark.parametrize("text", ["", "not json", "[]", '{"action": 7}', "[" * 10_000, '"\x00"'])
def test_a_notice_counts_whatever_its_text_is(text: str) -> None:
    advice = advise(SpotNotices(action=text))

    assert advice is not None
    assert advice.action is SpotAction.DRAIN
    assert advice.reason == "Spot interruption notice: the end of the instance"


@pytest.mark.parametrize(
    ("state", "drains"),
    [("InService", False), ("Warmed:Running", False), ("Terminated", True),
     ("Warmed:Terminated", True), ("", False)],
)  # fmt: skip
def test_scale_in_drains(state: str, drains: bool) -> None:
    advice = advise(SpotNotices(lifecycle=state))

    assert (advice is not None and advice.action is SpotAction.DRAIN) is drains


def test_a_recommendation_asks_to_leave_and_a_notice_outranks_it() -> None:
    recommended = '{"noticeTime": "2026-01-01T00:00:00Z"}'

    advice = advise(SpotNotices(recommendation=recommended))
    assert advice is not None
    assert advice.action is SpotAction.LEAVE
    assert advice.within_seconds is None
    both = advise(SpotNotices(action="{}", recommendation=recommended))
    assert both is not None
    assert both.action is SpotAction.DRAIN
    assert advise(SpotNotices()) is None


def test_the_service_is_asked_with_a_token_that_is_renewed(service: FakeImds) -> None:
    imds = Imds(service.address)
    service.says["instance-life-cycle"] = "spot"

    assert imds.get("instance-life-cycle") == "spot"
    assert imds.get("spot/instance-action") is None
    assert len(service.tokens) == 1
    service.tokens.clear()
    assert imds.get("instance-life-cycle") == "spot"
    assert len(service.tokens) == 1


def test_each_advice_is_told_once(service: FakeImds) -> None:
    watched = Watched(Imds(service.address))
    watched.watcher.look()
    assert watched.advice == []

    service.recommends()
    watched.watcher.look()
    watched.watcher.look()
    service.interrupts()
    watched.watcher.look()
    watched.watcher.look()

    assert [one.action for one in watched.advice] == [SpotAction.LEAVE, SpotAction.DRAIN]


def test_a_service_that_does_not_answer_is_told_once_and_stops_nothing(service: FakeImds) -> None:
    with fake_imds() as gone:
        address = gone.address
    watched = Watched(Imds(address, timeout_seconds=0.5))
    watched.watcher.look()
    watched.watcher.look()

    assert [error.code for error in watched.errors] == ["POLYNYA-AGT-021"]
    assert watched.advice == []
    with pytest.raises(DependencyError):
        Imds(address).get("spot/instance-action")


def test_a_machine_elsewhere_asks_nobody(tmp_path: Path) -> None:
    vendor = tmp_path / "sys/class/dmi/id/sys_vendor"
    vendor.parent.mkdir(parents=True)

    assert imds_at("auto", root=tmp_path) is None
    vendor.write_text("QEMU\n")
    assert imds_at("auto", root=tmp_path) is None
    vendor.write_text("Amazon EC2\n")
    found = imds_at("auto", root=tmp_path)
    assert found is not None
    assert found._address == ADDRESS
    assert imds_at("off", root=tmp_path) is None


@pytest.mark.parametrize(
    "url",
    ["http://10.0.0.1/", "https://127.0.0.1", "file:///etc/passwd", "http://[::ffff:10.0.0.1]",
     "http://169.254.169.254", "http://127.0.0.1.example.com", "on", "http://127.0.0.1@10.0.0.1"],
)  # fmt: skip
def test_a_stand_in_is_on_this_machine(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        imds_at(url)

    assert caught.value.code == "POLYNYA-AGT-020"
    assert imds_at("http://127.0.0.1:1338/") is not None


def test_only_on_demand_instances_and_machines_elsewhere_last(service: FakeImds) -> None:
    imds = Imds(service.address)

    assert is_on_demand(None)
    assert not is_on_demand(imds)
    service.says["instance-life-cycle"] = "on-demand"
    assert is_on_demand(imds)


def test_a_machine_tells_its_type_where_it_has_one(service: FakeImds) -> None:
    service.says["instance-type"] = "m7g.large"

    assert machine_type(Imds(service.address)) == "m7g.large"
    assert machine_type(None) == ""
    service.says.pop("instance-type")
    assert machine_type(Imds(service.address)) == ""


def test_a_node_that_starts_while_the_service_fails_learns_that_it_is_on_demand(
    service: FakeImds,
) -> None:
    service.says["instance-life-cycle"] = "on-demand"
    service.failing = True

    class Clock(FakeClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            service.failing = self.monotonic() < 10

    clock = Clock()

    assert is_on_demand(Imds(service.address), retry=Retry(deadline=20.0, clock=clock))
    assert clock.monotonic() >= 10


def test_a_service_that_stays_silent_makes_a_node_count_as_spot(service: FakeImds) -> None:
    service.failing = True

    assert not is_on_demand(Imds(service.address), retry=Retry(deadline=20.0, clock=FakeClock()))


@pytest.mark.parametrize(("life_cycle", "expected"), [("on-demand", True), ("spot", False)])
def test_what_the_boot_learned_needs_no_service(life_cycle: str, *, expected: bool) -> None:
    with fake_imds() as gone:
        imds = Imds(gone.address)

    assert is_on_demand(imds, life_cycle) is expected
    assert is_on_demand(None, life_cycle) is expected
