"""Jobs run where their task says: in this process's session, in another process, or in AWS."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from typing_extensions import override

from polynya.cluster.messages import Inbox, RunEnded, RunHandle, Workers
from polynya.cluster.submit.following import SeenBacklog, SubmittedRun
from polynya.cluster.submit.processes import ProcessRuns, Submission, arguments_of
from polynya.cluster.submit.services import completed, is_of_stage
from polynya.cluster.unit import JobKey
from polynya.engine.backlog import Backlog
from polynya.engine.commands.unit_command import UnitCommand
from polynya.engine.commands.unread import UnreadFiles, unread_files
from polynya.model.config.aws import AwsAccess
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.derived import DerivedTask
from polynya.model.config.engines import EmrServerlessEngine, Engine, Submitted, cluster_of
from polynya.model.config.mirror import ConnectedMirror
from polynya.model.config.stream_landing import DirectTask, StreamingLanding
from polynya.model.config.target import ResolvedTarget
from polynya.model.config.task import StorageTask
from polynya.model.config.task_kinds import Task
from polynya.model.error_catalogue.cluster import JOB_CODE_NOT_ALLOWED, JOB_FOLDER_LOCAL
from polynya.model.errors import ConfigError
from polynya.model.names import S3Location, shown
from polynya.store.clock import Clock
from polynya.store.jobs import JobRuns
from polynya.store.node_folders import JOB_CODE
from polynya.store.object_store import ObjectStore
from polynya.store.places import store_at

ACTIVE_FOLDER: Final = "in-force"
#: How often a process and a job of AWS are looked at, and a process that ended is started again, in
#: seconds.
_PROCESS_LOOK_SECONDS: Final = 0.5
_SERVICE_LOOK_SECONDS: Final = 15.0
_PROCESS_RETRY_SECONDS: Final = 2.0

#: Makes the runs of an engine of AWS.
Services = Callable[[Submitted, AwsAccess], JobRuns]


@dataclass(frozen=True, slots=True)
class AgentPlace:
    """Where an agent is.

    Attributes:
        config: of its configuration: a folder or `s3://BUCKET/PREFIX`.
        work: its own folder.
        base: what relative places of a target are relative to.
        owner: the identity under which its jobs take tables over.
    """

    config: str
    work: Path
    base: Path
    owner: str


def service_of(engine: Submitted, access: AwsAccess) -> JobRuns:
    """The runs of an engine in AWS."""
    # Start-up time: the AWS SDK.
    from polynya.store.aws.jobs import EmrServerlessRuns, GlueRuns

    if isinstance(engine, EmrServerlessEngine):
        return EmrServerlessRuns(engine, access)
    return GlueRuns(engine, access)


class RoutedWorkers(Workers):
    """Jobs of the engine of this process, and those that are submitted to others."""

    def __init__(
        self,
        here: Workers,
        target: ResolvedTarget,
        place: AgentPlace,
        inbox: Inbox,
        clock: Clock,
        *,
        services: Services = service_of,
    ) -> None:
        self._here, self._target, self._place = here, target, place
        self._inbox, self._clock, self._services = inbox, clock, services
        self._processes = ProcessRuns(place.work)

    @override
    def know(self, tasks: Sequence[Task] | None) -> None:
        # Streams are landed here.
        self._here.know(tasks)

    @override
    def landed(self, starts: Iterable[str]) -> None:
        # A submitted job lists by itself.
        self._here.landed(starts)

    @override
    def jobs(self, task: Task) -> list[str]:
        return self._here.jobs(task)

    @override
    def busy_seconds(self) -> float:
        # Submitted jobs keep no thread of this process busy.
        return self._here.busy_seconds()

    @override
    def alive(self) -> bool:
        return self._here.alive()

    @override
    def start(
        self, job: JobKey, task: Task, run: int, backlog: Backlog, epoch: int | None
    ) -> RunHandle:
        # Streams and databases are landed here, and mirrors kept: little work that never ends.
        # Tables that read their stream or other tables stay here, too: a job in AWS ends when its
        # work is done, and starts again only when files land.
        if isinstance(task, StreamingLanding | ConnectedCapture | ConnectedMirror):
            return self._here.start(job, task, run, backlog, epoch)
        engine = task.engine or self._target.engine
        if isinstance(task, DirectTask | DerivedTask) and isinstance(engine, Submitted):
            return self._here.start(job, task, run, backlog, epoch)
        if not isinstance(engine, Submitted) and cluster_of(engine) == self._target.cluster:
            return self._here.start(job, task, run, backlog, epoch)
        try:
            submission = self._submission(engine, job, task, run, epoch)
        except ConfigError as error:
            self._inbox.put(RunEnded(job, run, error))
            return _Nothing()
        seen = SeenBacklog(submission, backlog, self._clock)
        started = SubmittedRun(submission, run, self._inbox, self._clock, seen)
        started.start()
        return started

    @override
    def send(
        self, job: JobKey, task: Task, run: int, command: UnitCommand, epoch: int | None
    ) -> RunHandle:
        # Commands are executed here, whatever engine the task has.
        return self._here.send(job, task, run, command, epoch)

    def _submission(
        self, engine: Engine, job: JobKey, task: StorageTask, run: int, epoch: int | None
    ) -> Submission:
        target, place = self._target, self._place
        in_aws = isinstance(engine, Submitted)
        every = (
            engine.every.total_seconds()
            if isinstance(engine, Submitted)
            else _PROCESS_RETRY_SECONDS
        )
        config = place.config if in_aws else str(place.work / ACTIVE_FOLDER)
        arguments = arguments_of(
            job, config=config, target=target.name, owner=place.owner, epoch=epoch
        )
        # What a job in AWS costs it costs while it waits, so it ends when all is done.
        arguments += ("--once",) if in_aws else ("--base", str(place.base))
        if isinstance(engine, Submitted):
            _refuse_unreachable(engine, job, target, place)
            runs = self._services(_named_here(engine, job), target.aws)
        else:
            runs = self._processes
        return Submission(
            job=job,
            runs=runs,
            service=engine.mode,
            arguments=arguments,
            warehouse=str(target.warehouse),
            owner=place.owner,
            epoch=epoch,
            number=run,
            every_seconds=every,
            look_seconds=_SERVICE_LOOK_SECONDS if in_aws else _PROCESS_LOOK_SECONDS,
            landed=_digest_of(target, task) if in_aws else None,
            unread=_unread_of(target, task, job),
            away=in_aws,
        )


def _named_here(engine: Submitted, job: JobKey) -> Submitted:
    """The engine, whole; raises ConfigError where the machine does not name it, or its code."""
    if is_of_stage(engine):
        return completed(engine, job.task)
    _refuse_unnamed(engine, job)
    return engine


def _refuse_unnamed(engine: Submitted, job: JobKey) -> None:
    """Raise ConfigError for code that the machine does not name: a job runs it with its role."""
    if not isinstance(engine, EmrServerlessEngine):
        # A Glue job has its script and its environment by itself.
        return
    named = {"entry_point": engine.entry_point, "environment": engine.environment}
    for setting, place in named.items():
        if place is not None and not JOB_CODE.holds(place):
            raise JOB_CODE_NOT_ALLOWED(
                where=f"task {job.task}", setting=setting, value=shown(place)
            )


class _Nothing(RunHandle):
    """A job that could not be submitted."""

    @override
    def stop(self) -> None:
        pass


def _refuse_unreachable(
    engine: Submitted, job: JobKey, target: ResolvedTarget, place: AgentPlace
) -> None:
    """Raise ConfigError when a job in AWS could not reach what it works on."""
    places = {"landing": target.landing, "warehouse": target.warehouse}
    here = [name for name, one in places.items() if not isinstance(one, S3Location)]
    if not place.config.startswith("s3://"):
        here.append("the configuration")
    if here:
        raise JOB_FOLDER_LOCAL(where=job.name, engine=engine.mode, folders=", ".join(here))


def _unread_of(
    target: ResolvedTarget, task: StorageTask, job: JobKey
) -> Callable[[], UnreadFiles] | None:
    """The function that finds unread files of a job; None for a table that reads no files."""
    if isinstance(task, DirectTask | DerivedTask):
        return None
    return partial(unread_files, target, task, job.name)


def _digest_of(target: ResolvedTarget, task: StorageTask) -> Callable[[], str]:
    """Makes a text that changes when files land in the folder of a task."""
    stores: list[ObjectStore] = []

    def digest() -> str:
        if not stores:
            # On the thread that asks, once: a client costs a tenth of a second.
            stores.append(store_at(target.landing, target.aws))
        found = hashlib.sha256()
        for one in stores[0].list(task.landing.path):
            found.update(f"{one.path}\0{one.size}\0{one.version}\n".encode())
        return found.hexdigest()

    return digest
