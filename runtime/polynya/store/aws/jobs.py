"""Job runs of EMR Serverless and Glue."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from typing_extensions import override

from polynya.model.config.aws import AwsAccess
from polynya.model.config.engines import EmrServerlessEngine, GlueEngine
from polynya.model.error_catalogue.cluster import GLUE_RUN_NOT_STOPPED
from polynya.store.aws.clients import AWS_ERRORS, client, code_of, explained
from polynya.store.clock import Clock, SystemClock
from polynya.store.jobs import (
    MAX_RUN_HOURS,
    JobOrder,
    JobRuns,
    RunSeen,
    RunState,
    exit_code_in,
    label_in,
)

T = TypeVar("T")

#: Arguments of the script, which `cluster/submit/entry.py` reads.
_ARGUMENTS: Final = "--polynya-arguments"
_LABEL: Final = "--polynya-label"
_GLUE_STATES: Final = {
    "SUCCEEDED": RunState.SUCCEEDED,
    "FAILED": RunState.FAILED,
    "ERROR": RunState.FAILED,
    "TIMEOUT": RunState.FAILED,
    "EXPIRED": RunState.FAILED,
    "STOPPED": RunState.CANCELLED,
}
_FEWEST_WORKERS: Final = 2


class GlueRuns(JobRuns):
    """See `JobRuns`. Glue has no token: a submission is found again by its label alone."""

    def __init__(
        self,
        engine: GlueEngine,
        access: AwsAccess,
        *,
        clock: Clock | None = None,
        glue: Any | None = None,
    ) -> None:
        self._engine, self._clock = engine, clock or SystemClock()
        assert engine.job_name is not None, "the caller has completed the engine"
        self._job = engine.job_name
        self._glue: Any = glue or client("glue", access)

    @override
    def submit(self, order: JobOrder) -> str:
        text = base64.b64encode(json.dumps(list(order.arguments)).encode()).decode()
        answer = self._asked(
            "start a run of the job",
            "glue:StartJobRun",
            lambda: self._glue.start_job_run(
                JobName=self._job,
                Arguments={_ARGUMENTS: text, _LABEL: str(order.label)},
                Timeout=MAX_RUN_HOURS * 60,
                **_size(self._engine),
            ),
        )
        return str(answer["JobRunId"])

    @override
    def look(self, run: str) -> RunSeen:
        answer = self._asked(
            "look at a run of the job",
            "glue:GetJobRun",
            lambda: self._glue.get_job_run(JobName=self._job, RunId=run),
        )
        return _seen_by_glue(answer["JobRun"])

    @override
    def recent(self, scope: str) -> Sequence[RunSeen]:
        """Glue lists the newest run first."""
        since = self._clock.now() - timedelta(hours=MAX_RUN_HOURS)
        asked: dict[str, Any] = {"JobName": self._job}
        found: list[RunSeen] = []
        while True:
            page = self._asked(
                "list the runs of the job",
                "glue:GetJobRuns",
                lambda asked=asked: self._glue.get_job_runs(**asked),  # type: ignore[misc]
            )
            runs = [run for run in page["JobRuns"] if _started(run, since) >= since]
            seen = (_seen_by_glue(run) for run in runs)
            found += [run for run in seen if run.label is not None and run.label.scope == scope]
            if not page.get("NextToken") or len(runs) < len(page["JobRuns"]):
                return found
            asked = {**asked, "NextToken": page["NextToken"]}

    @override
    def cancel(self, run: str) -> None:
        answer = self._asked(
            "stop a run of the job",
            "glue:BatchStopJobRun",
            lambda: self._glue.batch_stop_job_run(JobName=self._job, JobRunIds=[run]),
        )
        # The answer is a success, and says run by run what was refused.
        for one in answer.get("Errors", ()):
            if self.look(run).state is RunState.ACTIVE:
                why = str(one.get("ErrorDetail", {}).get("ErrorMessage", ""))
                raise GLUE_RUN_NOT_STOPPED(where=f"Glue job {self._job}", run=run, reason=why)

    def _asked(self, action: str, grant: str, ask: Callable[[], T]) -> T:
        resource = f"Glue job {self._job}"
        try:
            return ask()
        except AWS_ERRORS as error:
            raise explained(
                error, action=action, resource=resource, grant=f"{grant} on the {resource}"
            ) from error


def _size(engine: GlueEngine) -> dict[str, Any]:
    """The workers that a run asks for; those of the job when nothing is set."""
    size: dict[str, Any] = {}
    if engine.worker_type is not None:
        size["WorkerType"] = engine.worker_type
    if engine.workers is not None or engine.worker_type is not None:
        size["NumberOfWorkers"] = engine.workers or _FEWEST_WORKERS
    return size


def _started(run: Any, unknown: datetime) -> datetime:
    started: datetime = run.get("StartedOn") or unknown
    return started


def _seen_by_glue(run: Any) -> RunSeen:
    why = str(run.get("ErrorMessage") or "")
    return RunSeen(
        id=str(run["Id"]),
        label=label_in(str(run.get("Arguments", {}).get(_LABEL, ""))),
        state=_GLUE_STATES.get(run["JobRunState"], RunState.ACTIVE),
        why=why,
        exit_code=exit_code_in(why),
    )


_EMR_STATES: Final = {
    "SUCCESS": RunState.SUCCEEDED,
    "FAILED": RunState.FAILED,
    "CANCELLED": RunState.CANCELLED,
}
#: Executors would do nothing: the process brings a Spark of its own, which works in the driver.
_ALONE: Final = (
    "--conf spark.dynamicAllocation.enabled=false --conf spark.executor.instances=1 "
    "--conf spark.executor.cores=1 --conf spark.executor.memory=1g"
)


class EmrServerlessRuns(JobRuns):
    """See `JobRuns`. A submission that is repeated with the same label is the same run."""

    def __init__(
        self,
        engine: EmrServerlessEngine,
        access: AwsAccess,
        *,
        clock: Clock | None = None,
        emr: Any | None = None,
    ) -> None:
        self._engine, self._clock = engine, clock or SystemClock()
        self._application = engine.application_id
        self._emr: Any = emr or client("emr-serverless", access)

    @override
    def submit(self, order: JobOrder) -> str:
        answer = self._asked(
            "start a job",
            "emr-serverless:StartJobRun on the application, and iam:PassRole on the role",
            lambda: self._emr.start_job_run(
                applicationId=self._application,
                clientToken=str(order.label),
                executionRoleArn=self._engine.execution_role,
                name=f"{order.label} {order.title}"[:256],
                executionTimeoutMinutes=MAX_RUN_HOURS * 60,
                jobDriver={
                    "sparkSubmit": {
                        "entryPoint": self._engine.entry_point,
                        "entryPointArguments": list(order.arguments),
                        "sparkSubmitParameters": _parameters(self._engine),
                    }
                },
            ),
        )
        return str(answer["jobRunId"])

    @override
    def look(self, run: str) -> RunSeen:
        answer = self._asked(
            "look at a job",
            "emr-serverless:GetJobRun",
            lambda: self._emr.get_job_run(applicationId=self._application, jobRunId=run),
        )
        return _seen_by_emr(answer["jobRun"], run)

    @override
    def recent(self, scope: str) -> Sequence[RunSeen]:
        since = self._clock.now() - timedelta(hours=MAX_RUN_HOURS)
        asked: dict[str, Any] = {"applicationId": self._application, "createdAtAfter": since}
        found: list[RunSeen] = []
        while True:
            page = self._asked(
                "list the jobs",
                "emr-serverless:ListJobRuns",
                lambda asked=asked: self._emr.list_job_runs(**asked),  # type: ignore[misc]
            )
            runs = (_seen_by_emr(run, str(run["id"])) for run in page["jobRuns"])
            found += [run for run in runs if run.label is not None and run.label.scope == scope]
            if not page.get("nextToken"):
                return found
            asked = {**asked, "nextToken": page["nextToken"]}

    @override
    def cancel(self, run: str) -> None:
        try:
            self._emr.cancel_job_run(applicationId=self._application, jobRunId=run)
        except AWS_ERRORS as error:
            # It has ended already.
            if code_of(error) not in {"ConflictException", "ResourceNotFoundException"}:
                raise self._explained(
                    error, "cancel a job", "emr-serverless:CancelJobRun"
                ) from error

    def _asked(self, action: str, grant: str, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except AWS_ERRORS as error:
            raise self._explained(error, action, grant) from error

    def _explained(self, error: Exception, action: str, grant: str) -> Exception:
        resource = f"EMR Serverless application {self._application}"
        return explained(error, action=action, resource=resource, grant=grant)


def _seen_by_emr(run: Any, number: str) -> RunSeen:
    why = str(run.get("stateDetails") or "")
    return RunSeen(
        id=number,
        label=label_in(str(run.get("name") or "")),
        state=_EMR_STATES.get(run["state"], RunState.ACTIVE),
        why=why,
        exit_code=exit_code_in(why),
    )


def _parameters(engine: EmrServerlessEngine) -> str:
    """Parameters of `spark-submit`. No text of a configuration file can hold a space here."""
    size = (
        f"--conf spark.driver.cores={engine.vcpu} --conf spark.driver.memory={engine.memory}g "
        + _ALONE
    )
    if engine.environment is None:
        return size
    return f"{size} --conf spark.archives={engine.environment}#environment"
