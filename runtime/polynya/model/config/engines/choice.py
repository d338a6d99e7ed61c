"""Where the session of `polynya run` works when its tasks name engines: a pure choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polynya.model.config.engines.engine import LOCAL, Engine, Submitted
from polynya.model.config.engines.standalone import SparkCluster, SparkEngine


@dataclass(frozen=True, slots=True)
class Choice:
    """Where a session works, None for this process; and what people should know of it."""

    cluster: SparkCluster | None
    notes: tuple[str, ...] = ()


def cluster_of(engine: Engine) -> SparkCluster | None:
    """The cluster of an engine, None where Spark runs in the process that works."""
    return engine.cluster() if isinstance(engine, SparkEngine) else None


def session_for(default: Engine, tasks: Mapping[str, Engine | None]) -> Choice:
    """Where one session does the work of tasks.

    Args:
        default: engine of the target.
        tasks: what each task names, by name; None: the default.
    """
    wanted = {name: engine or default for name, engine in tasks.items()}
    notes = [
        f"{name}: `engine` {engine.mode} is for agents; it runs in this process"
        for name, engine in wanted.items()
        if isinstance(engine, Submitted)
    ]
    here = {name: LOCAL if isinstance(one, Submitted) else one for name, one in wanted.items()}
    engines = list(dict.fromkeys(cluster_of(one) for one in here.values()))
    if len(engines) == 1:
        return Choice(engines[0], tuple(notes))
    cluster = cluster_of(default)
    notes += [
        f"{name}: its `engine` is not used together with tasks that have another one; run it by "
        "itself"
        for name, engine in here.items()
        if cluster_of(engine) != cluster
    ]
    return Choice(cluster, tuple(notes))
