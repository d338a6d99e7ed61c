"""Spot notices: the EC2 instance metadata service, what its answers mean, and the watcher.

`Imds` speaks version 2 of the service: a token, then plain GET requests. The address is link-local,
so no proxy is used and no redirect is followed. `advise` turns the answers into a request to drain
or to leave, and `SpotWatcher` asks on a thread.
"""

from __future__ import annotations

import ipaddress
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from polynya.model.error_catalogue.cluster import IMDS_ADDRESS_INVALID, IMDS_UNREACHABLE
from polynya.model.errors import PolynyaError
from polynya.store.aws.machine_role import is_ec2
from polynya.store.clock import Retry

#: Where the service is on every EC2 instance.
ADDRESS: Final = "http://169.254.169.254"

_TOKEN_SECONDS: Final = 21_600
_TIMEOUT_SECONDS: Final = 2.0
_MAX_ANSWER_BYTES: Final = 65_536


def imds_at(choice: str, *, root: Path = Path("/")) -> Imds | None:
    """The service that a choice of the command line means, None when there is none to ask.

    Args:
        choice: `auto` asks it on an EC2 instance only, `off` never; a URL on a loopback address is
            one that stands in for it.
        root: of the file system that shows whether this is an EC2 instance.

    Raises:
        ConfigError: it is something else (POLYNYA-AGT-020).
    """
    if choice == "off":
        return None
    if choice == "auto":
        return Imds(ADDRESS) if is_ec2(root) else None
    address = urlsplit(choice)
    if address.scheme != "http" or not _is_loopback(address.hostname):
        raise IMDS_ADDRESS_INVALID(choice=choice)
    return Imds(choice.rstrip("/"))


class Imds:
    """Asks the service; renews its token when need be."""

    def __init__(self, address: str, *, timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        self._address, self._timeout_seconds = address, timeout_seconds
        self._opener = build_opener(ProxyHandler({}), _NoRedirect())
        self._token: str | None = None

    def get(self, path: str) -> str | None:
        """The text at a path of the metadata, None when there is nothing.

        Raises:
            DependencyError: the service does not answer (POLYNYA-AGT-021).
        """
        try:
            return self._asked_again(path)
        except (OSError, HTTPException) as error:
            raise IMDS_UNREACHABLE(where=self._address, reason=error) from error

    def _asked_again(self, path: str) -> str | None:
        try:
            return self._asked(path)
        except HTTPError as error:
            if error.code != 401:
                raise
        # The token expired.
        self._token = None
        return self._asked(path)

    def _asked(self, path: str) -> str | None:
        headers = {"X-aws-ec2-metadata-token": self._fresh_token()}
        try:
            return self._sent(f"/latest/meta-data/{path}", headers)
        except HTTPError as error:
            if error.code == 404:
                return None
            raise

    def _fresh_token(self) -> str:
        if self._token is None:
            wanted = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_SECONDS)}
            self._token = self._sent("/latest/api/token", wanted, method="PUT")
        return self._token

    def _sent(self, path: str, headers: Mapping[str, str], method: str = "GET") -> str:
        # The scheme is http: `imds_at` takes no other.
        request = Request(  # noqa: S310
            f"{self._address}{path}", headers=dict(headers), method=method
        )
        with self._opener.open(request, timeout=self._timeout_seconds) as answer:
            data: bytes = answer.read(_MAX_ANSWER_BYTES)
        return data.decode("utf-8", "replace").strip()


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_given: Any, **_named: Any) -> None:
        """Follow none."""
        return


def _is_loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


#: Seconds from the notice until the node is gone, at the latest: AWS gives two minutes, and up to
#: `EVERY_SECONDS` pass until the agent sees the notice.
NOTICE_SECONDS: Final = 90.0
#: How the reason of a node begins that AWS takes back.
INTERRUPTION: Final = "Spot interruption notice"


class SpotAction(StrEnum):
    """What the node should do."""

    DRAIN = "drain"
    LEAVE = "leave"
    """Give its work to others if there are any, and keep running."""


@dataclass(frozen=True, slots=True)
class SpotNotices:
    """The answers of the service, None where it had none.

    Attributes:
        action: `spot/instance-action`.
        recommendation: `events/recommendations/rebalance`.
        lifecycle: `autoscaling/target-lifecycle-state`.
    """

    action: str | None = None
    recommendation: str | None = None
    lifecycle: str | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """An action, why, and for DRAIN how many seconds it may take at most (None: as configured)."""

    action: SpotAction
    reason: str
    within_seconds: float | None = None


def advise(notices: SpotNotices) -> Advice | None:
    """The advice that follows from notices, None without one.

    A notice counts even if its text cannot be read.
    """
    if notices.action is not None:
        action, at = _field(notices.action, "action"), _field(notices.action, "time")
        reason = f"{INTERRUPTION}: {action or 'the end of the instance'}"
        return Advice(SpotAction.DRAIN, f"{reason} at {at}" if at else reason, NOTICE_SECONDS)
    if notices.lifecycle is not None and notices.lifecycle.rpartition(":")[2] == "Terminated":
        return Advice(SpotAction.DRAIN, "the Auto Scaling group ends this instance")
    if notices.recommendation is not None:
        at = _field(notices.recommendation, "noticeTime")
        reason = "rebalance recommendation: an interruption is more likely"
        return Advice(SpotAction.LEAVE, f"{reason}, sent at {at}" if at else reason)
    return None


def _field(text: str, name: str) -> str | None:
    """A short text of a JSON object; None when it is not there, whatever else is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = value.get(name) if isinstance(value, dict) else None
    return found[:40] if isinstance(found, str) and found[:40].isprintable() else None


#: AWS recommends to look for a notice every five seconds.
EVERY_SECONDS: Final = 5.0


class SpotWatcher:
    """Reports each advice once, and each outage of the service once.

    `advised` and `failed` are called on the thread of the watcher.
    """

    def __init__(
        self,
        imds: Imds,
        advised: Callable[[Advice], None],
        failed: Callable[[PolynyaError], None],
    ) -> None:
        self._imds, self._advised, self._failed = imds, advised, failed
        self._before: Advice | None = None
        self._silent: str | None = None

    def start(self, every_seconds: float = EVERY_SECONDS) -> None:
        """Look from now on, until the process ends."""

        def watch() -> None:
            pause = threading.Event()
            while not pause.wait(every_seconds):
                self.look()

        threading.Thread(target=watch, name="spot", daemon=True).start()

    def look(self) -> None:
        """Ask once, and report what is new."""
        try:
            advice = advise(self._notices())
        except PolynyaError as error:
            if str(error) != self._silent:
                self._silent = str(error)
                self._failed(error)
            return
        self._silent = None
        before, self._before = self._before, advice
        if advice is not None and advice != before:
            self._advised(advice)

    def _notices(self) -> SpotNotices:
        action = self._imds.get("spot/instance-action")
        if action is not None:
            # Nothing else matters, and another request could fail.
            return SpotNotices(action=action)
        return SpotNotices(
            recommendation=self._imds.get("events/recommendations/rebalance"),
            lifecycle=self._imds.get("autoscaling/target-lifecycle-state"),
        )


#: How a machine is paid for whose metadata service says `on-demand`.
_ON_DEMAND: Final = "on-demand"
#: How long a service that fails is asked for it: the answer holds for as long as the process lives.
_LIFE_CYCLE_SECONDS: Final = 20.0


def machine_type(imds: Imds | None) -> str:
    """The type of this instance, such as `m7g.large`; empty outside of EC2 or without an answer."""
    return _fact(imds, "instance-type")


def machine_zone(imds: Imds | None) -> str:
    """The zone of this instance, such as `eu-west-1a`; empty in the same cases as its type."""
    return _fact(imds, "placement/availability-zone")


def _fact(imds: Imds | None, path: str) -> str:
    try:
        return (imds.get(path) or "")[:100] if imds is not None else ""
    except PolynyaError:
        return ""


def is_on_demand(
    imds: Imds | None, life_cycle: str | None = None, retry: Retry | None = None
) -> bool:
    """Whether AWS does not interrupt this machine; True outside of EC2.

    Without an answer it counts as Spot: then it gets no units because it lasts.

    Args:
        imds: the metadata service, None outside of EC2.
        life_cycle: what the service told the boot of this machine, None if that is not known.
        retry: how long to ask a service that fails.
    """
    if life_cycle is not None:
        return life_cycle == _ON_DEMAND
    if imds is None:
        return True
    retry = retry or Retry(deadline=_LIFE_CYCLE_SECONDS, first_pause=0.5, longest_pause=2.0)
    try:
        return retry.run(
            lambda: imds.get("instance-life-cycle") == _ON_DEMAND,
            lambda error: isinstance(error, PolynyaError),
        )
    except PolynyaError:
        return False
