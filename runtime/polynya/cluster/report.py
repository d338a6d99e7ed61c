"""Node status as JSON values: for the state file, the stream and people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from polynya.cluster.configuration.accept import InForce
from polynya.cluster.configuration.assigned import UNNAMED
from polynya.cluster.jobs import Job
from polynya.engine.work.backlog import Taken, Waiting
from polynya.engine.work.turns.threads import THREADS
from polynya.model.errors import PolynyaError
from polynya.observe.upkeep import shape_of

FORMAT_VERSION: Final = "1.0"

#: The state of a task is the first of these that one of its jobs is in.
_WORST_FIRST: Final = ("suspended", "waiting", "stopping", "running", "stopped", "elsewhere")
#: States of a job that nobody has to do anything about.
_FINE: Final = ("running", "stopping", "stopped", "elsewhere")


@dataclass(frozen=True, slots=True)
class Node:
    """Who reports. `cluster` is the name of its metrics' dimension, None for the project's."""

    id: str
    cluster: str | None
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Facts:
    """What a report is made of.

    `state` is `starting`, `running`, `draining` or `stopped`. `unread` is why the configuration
    could not be read when that was tried last, `unused` what lies there and is no file of the
    project. `backlogs` are by job. `sharing` is this node's part in its cluster, None without.
    `busy_seconds` is how long the threads of the engine have worked, all together.
    """

    node: Node
    at: datetime
    state: str
    in_force: InForce | None
    unread: PolynyaError | None
    unused: Sequence[PolynyaError]
    jobs: Sequence[Job]
    backlogs: Sequence[Waiting]
    streams: Sequence[Mapping[str, Taken]]
    sharing: Mapping[str, Any] | None = None
    busy_seconds: float = 0.0


def node_report(facts: Facts) -> dict[str, Any]:
    """All that is known of a node; times in UTC, durations in seconds, sizes in bytes."""
    return {
        "format_version": FORMAT_VERSION,
        "node": facts.node.id,
        "cluster": facts.node.cluster or _project(facts),
        "started_at": facts.node.started_at,
        "at": facts.at,
        "state": facts.state,
        "configuration": _configuration(facts),
        "backlog": _rounded(total(facts.backlogs)),
        "engine": {"threads": THREADS, "busy_seconds": round(facts.busy_seconds, 3)},
        "sharing": facts.sharing,
        "tasks": _tasks(facts),
    }


def summary(report: Mapping[str, Any]) -> str:
    """A report in one line, such as `2 running, 1 suspended`."""
    states = [task["state"] for task in report["tasks"].values()]
    counted = [f"{states.count(state)} {state}" for state in _WORST_FIRST if state in states]
    broken = len(report["configuration"]["errors"])
    if broken:
        counted.append(f"{broken} broken file{'s' if broken > 1 else ''}")
    return ", ".join(counted) or "no tasks"


def is_healthy(report: Mapping[str, Any]) -> bool:
    """Whether nothing in a report needs anybody."""
    configuration = report["configuration"]
    fine = all(task["state"] in _FINE and not task["held"] for task in report["tasks"].values())
    nobodys = UNNAMED in configuration["elsewhere"].values()
    return fine and not nobodys and not configuration["errors"] and configuration["unread"] is None


def total(backlogs: Iterable[Waiting]) -> Waiting:
    """The backlog of several jobs, of which `THREADS` work at the same time.

    Of work that a service does only files and bytes are added: its time is none of this node's, and
    its age nothing that another node would change.
    """
    waiting = list(backlogs)
    found = [one for one in waiting if one.files]
    here = [one for one in found if not one.elsewhere]
    return Waiting(
        files=sum(one.files for one in found),
        size_bytes=sum(one.size_bytes for one in found),
        seconds=sum(one.seconds for one in here) / min(THREADS, len(here) or 1),
        oldest_seconds=max((one.oldest_seconds for one in here), default=0.0),
        keeps_node=any(one.keeps_node for one in waiting),
    )


def _project(facts: Facts) -> str | None:
    return facts.in_force.project.cluster_name if facts.in_force is not None else None


def _configuration(facts: Facts) -> dict[str, Any]:
    in_force = facts.in_force
    snapshot = in_force.snapshot if in_force is not None else None
    return {
        "identity": snapshot.identity if snapshot is not None else None,
        "revision": snapshot.revision if snapshot is not None else None,
        "edited": list(snapshot.edited) if snapshot is not None else [],
        "kept": list(in_force.kept) if in_force is not None else [],
        "elsewhere": dict(sorted(in_force.elsewhere.items())) if in_force is not None else {},
        "errors": [error.as_dict() for error in in_force.errors.values()] if in_force else [],
        "unused": [error.as_dict() for error in facts.unused],
        "unread": facts.unread.as_dict() if facts.unread is not None else None,
    }


def _tasks(facts: Facts) -> dict[str, Any]:
    found: dict[str, Any] = {}
    files = {name: one.file for name, one in facts.in_force.tasks.items()} if facts.in_force else {}
    for job, waiting, streams in zip(facts.jobs, facts.backlogs, facts.streams, strict=True):
        task = found.setdefault(
            job.key.task, {"file": files.get(job.key.task), "state": "", "held": False, "jobs": {}}
        )
        task["held"] = task["held"] or job.held is not None
        shape = shape_of(job.looks.values())
        task["jobs"][job.key.name] = {
            "state": job.state,
            "reason": job.reason,
            "version": job.running or job.wanted,
            "records": job.records,
            "failures": job.failed,
            "busy_seconds": round(job.busy_seconds, 3),
            "epoch": job.epoch if job.running is not None else None,
            "fenced_total": job.fences,
            "maintenance_bytes": job.maintained,
            "health_percent": shape.health_percent if shape is not None else None,
            "shape": asdict(shape) if shape is not None else None,
            "last_step": asdict(job.step) if job.step is not None else None,
            "lag_seconds": round(waiting.oldest_seconds, 3),
            "backlog": _rounded(waiting),
            "streams": {
                name: {
                    "records": taken.records,
                    "bytes": taken.size_bytes,
                    "behind_seconds": round(taken.behind_seconds, 3),
                }
                for name, taken in streams.items()
            },
        }
    for task in found.values():
        states = {job["state"] for job in task["jobs"].values()}
        task["state"] = next(state for state in _WORST_FIRST if state in states)
    return found


def _rounded(waiting: Waiting) -> dict[str, Any]:
    return {
        "files": waiting.files,
        "bytes": waiting.size_bytes,
        "seconds": round(waiting.seconds, 3),
        "oldest_seconds": round(waiting.oldest_seconds, 3),
        "elsewhere": waiting.elsewhere,
        "keeps_node": waiting.keeps_node,
    }
