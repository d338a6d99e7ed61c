"""Where an agent reports its status. Nothing that fails here stops a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from polynya.cluster.gossip.messages import Report, UnitHeard
from polynya.cluster.gossip.port import Gossip
from polynya.cluster.sharing.loads import LoadMeter
from polynya.cluster.unit import JobKey
from polynya.store.object_store import LocalObjectStore

STATE_FILE: Final = "state.json"

Encode: TypeAlias = Callable[[object], str]
"""A value as one line of JSON."""


class Outlets:
    """All places that take the reports of a node; what they return is what went wrong."""

    def __init__(self, places: Iterable[Callable[[Mapping[str, Any]], str | None]]) -> None:
        # As it is at each report: some are only known when the engine runs.
        self._places = places
        self._wrong: dict[int, str] = {}

    def put(self, report: Mapping[str, Any]) -> list[str]:
        """Give it to all; returns what is wrong and was not said before."""
        news = []
        for number, put in enumerate(self._places):
            wrong = put(report) or ""
            if wrong and wrong != self._wrong.get(number):
                news.append(wrong)
            self._wrong[number] = wrong
        return news


class StateFile:
    """The newest report, in the work folder; whole at every moment."""

    def __init__(self, folder: LocalObjectStore, encode: Encode) -> None:
        self._folder, self._encode = folder, encode

    def put(self, report: Mapping[str, object]) -> str | None:
        """Write it; returns what was wrong, if anything."""
        try:
            self._folder.put(STATE_FILE, self._encode(report).encode())
        except OSError as error:
            return f"{STATE_FILE}: {error.strerror}"
        return None


class HeartbeatOutlet:
    """The heart of a report on the workload stream, for a node that shares nothing.

    `now` is in monotonic seconds.
    """

    def __init__(self, gossip: Gossip, now: Callable[[], float]) -> None:
        self._gossip, self._now = gossip, now
        self._loads = LoadMeter()

    def put(self, report: Mapping[str, Any]) -> str | None:
        """Tell it; returns what was wrong with the last one, if anything."""
        jobs = {
            JobKey(task, name): job
            for task, one in report["tasks"].items()
            for name, job in one["jobs"].items()
        }
        totals = {key: job["busy_seconds"] for key, job in jobs.items()}
        loads = self._loads.measured(totals, self._now())
        units = (
            UnitHeard(
                unit=key,
                epoch=0,
                load=loads.get(key, 0.0),
                lag_seconds=job["lag_seconds"],
                backlog_seconds=job["backlog"]["seconds"],
                state=job["state"],
                reason=job["reason"] if job["state"] in ("waiting", "suspended") else "",
            )
            for key, job in jobs.items()
        )
        self._gossip.tell(Report(report["state"], tuple(units)))
        trouble = self._gossip.heard().trouble
        return f"workload stream: {trouble}" if trouble is not None else None
