"""What the machines of a group cost: asked of AWS at most once an hour for each type and zone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias, TypeVar

from polynya.cluster.network.documents import MachinePrice, PriceReport
from polynya.engine.errors import as_polynya
from polynya.model.errors import PolynyaError
from polynya.store.clock import Clock
from polynya.store.jobs import MachinePrices

#: The type of a machine and its zone.
Machine: TypeAlias = tuple[str, str]
T = TypeVar("T")

ASK_EVERY: Final = timedelta(hours=1)
#: The agent stops showing a price, and forgets a type of machine, after this time without news.
_KEPT: Final = timedelta(days=1)
_MAX_CHARACTERS: Final = 1000


def machines_to_ask(
    report: PriceReport | None, machines: Collection[Machine], now: datetime
) -> frozenset[Machine]:
    """The machines whose prices are not known, or were asked for an hour ago."""
    asked = {(one.machine, one.zone): one.asked_at for one in report.machines} if report else {}
    return frozenset(one for one in machines if one not in asked or now - asked[one] >= ASK_EVERY)


def with_answers(
    report: PriceReport | None,
    asked: Collection[Machine],
    spot: Mapping[Machine, float] | PolynyaError,
    on_demand: Mapping[str, float] | PolynyaError,
    now: datetime,
) -> PriceReport:
    """The report after AWS was asked for some machines; a question that failed changes no price."""
    before = {(one.machine, one.zone): one for one in report.machines} if report else {}
    found = {key: one for key, one in before.items() if now - one.asked_at < _KEPT}
    for machine, zone in asked:
        known = before.get((machine, zone), MachinePrice(machine=machine, zone=zone, asked_at=now))
        changes: dict[str, object] = {"asked_at": now}
        if not isinstance(spot, PolynyaError):
            changes |= {"spot": spot.get((machine, zone)), "spot_at": now}
        if not isinstance(on_demand, PolynyaError):
            changes |= {"on_demand": on_demand.get(machine), "on_demand_at": now}
        found[machine, zone] = known.model_copy(update=changes)
    failures = (one for one in (spot, on_demand) if isinstance(one, PolynyaError))
    troubles = dict.fromkeys(map(str, failures))
    since = None
    if troubles:
        since = report.since if report is not None and report.since is not None else now
    return PriceReport(
        machines=tuple(found[key] for key in sorted(found)),
        trouble="; ".join(troubles)[:_MAX_CHARACTERS],
        since=since,
    )


@dataclass(frozen=True, slots=True)
class NodePrice:
    """What a node costs in US dollars an hour, as of `at`; else why that is unknown, and since."""

    hourly: float | None = None
    at: datetime | None = None
    unknown: str | None = None
    since: datetime | None = None


def price_of(
    report: PriceReport | None, machine: str, zone: str, *, on_demand: bool, now: datetime
) -> NodePrice:
    """The price of a node by the type and the zone of its machine, both empty outside of EC2."""
    if not machine:
        return NodePrice(unknown="it does not run on EC2, which alone tells its prices")
    if report is None:
        return NodePrice(unknown="no network agent has asked AWS for prices")
    found = next(
        (one for one in report.machines if (one.machine, one.zone) == (machine, zone)), None
    )
    if found is None:
        return NodePrice(unknown=report.trouble or "AWS was not asked yet", since=report.since)
    hourly, at = (found.on_demand, found.on_demand_at) if on_demand else (found.spot, found.spot_at)
    if at is None or now - at >= _KEPT:
        return NodePrice(
            unknown=report.trouble or "AWS was not asked lately", since=at or report.since
        )
    if hourly is None:
        return NodePrice(unknown=f"AWS tells no price of {machine} in {zone}", since=at)
    return NodePrice(hourly, at)


def _in_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="prices", daemon=True).start()


class PriceWatch:
    """Asks for the prices of the machines of one group, beside the turns of the network agent.

    An isolated network may have no way to the price list: a turn does not wait for that.

    Args:
        prices: who is asked.
        clock: the time.
        beside: runs a question; default: on a thread.
    """

    def __init__(
        self,
        prices: MachinePrices,
        clock: Clock,
        beside: Callable[[Callable[[], None]], None] = _in_thread,
    ) -> None:
        self._prices, self._clock, self._beside = prices, clock, beside
        self._asking = False
        self.report: PriceReport | None = None

    def look(self, machines: Collection[Machine]) -> None:
        """Ask if it is time."""
        wanted = machines_to_ask(self.report, machines, self._clock.now())
        if wanted and not self._asking:
            self._asking = True
            self._beside(lambda: self._ask(wanted))

    def _ask(self, machines: Collection[Machine]) -> None:
        try:
            types = {machine for machine, _ in machines}
            spot = _tried(lambda: self._prices.spot(types))
            on_demand = _tried(lambda: self._prices.on_demand(types))
            now = self._clock.now()
            self.report = with_answers(self.report, machines, spot, on_demand, now)
        finally:
            self._asking = False


def _tried(ask: Callable[[], T]) -> T | PolynyaError:
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 - the edge of a thread
        return as_polynya(error)
