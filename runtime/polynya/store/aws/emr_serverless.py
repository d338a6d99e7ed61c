"""Job runs of an EMR Serverless application."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar

from polynya.model.config.aws import AwsAccess
from polynya.model.config.engines.submitted import EmrServerlessEngine
from polynya.store.aws.clients import AWS_ERRORS, client, code_of, explained
from polynya.store.clock import Clock, SystemClock
from polynya.store.job_runs import (
    MOST_HOURS,
    Order,
    RunSeen,
    RunState,
    exit_code_in,
    label_in,
)

T = TypeVar("T")

_STATES: Final = {
    "SUCCESS": RunState.SUCCEEDED,
    "FAILED": RunState.FAILED,
    "CANCELLED": RunState.CANCELLED,
}
#: Executors would do nothing: the process brings a Spark of its own, which works in the driver.
_ALONE: Final = (
    "--conf spark.dynamicAllocation.enabled=false --conf spark.executor.instances=1 "
    "--conf spark.executor.cores=1 --conf spark.executor.memory=1g"
)


class EmrServerlessRuns:
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

    def submit(self, order: Order) -> str:
        """See `JobRuns`."""
        answer = self._asked(
            "start a job",
            "emr-serverless:StartJobRun on the application, and iam:PassRole on the role",
            lambda: self._emr.start_job_run(
                applicationId=self._application,
                clientToken=str(order.label),
                executionRoleArn=self._engine.execution_role,
                name=f"{order.label} {order.title}"[:256],
                executionTimeoutMinutes=MOST_HOURS * 60,
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

    def look(self, run: str) -> RunSeen:
        """See `JobRuns`."""
        answer = self._asked(
            "look at a job",
            "emr-serverless:GetJobRun",
            lambda: self._emr.get_job_run(applicationId=self._application, jobRunId=run),
        )
        return _seen(answer["jobRun"], run)

    def recent(self, scope: str) -> Sequence[RunSeen]:
        """See `JobRuns`."""
        since = self._clock.now() - timedelta(hours=MOST_HOURS)
        asked: dict[str, Any] = {"applicationId": self._application, "createdAtAfter": since}
        found: list[RunSeen] = []
        while True:
            page = self._asked(
                "list the jobs",
                "emr-serverless:ListJobRuns",
                lambda asked=asked: self._emr.list_job_runs(**asked),  # type: ignore[misc]
            )
            runs = (_seen(one, str(one["id"])) for one in page["jobRuns"])
            found += [one for one in runs if one.label is not None and one.label.scope == scope]
            if not page.get("nextToken"):
                return found
            asked = {**asked, "nextToken": page["nextToken"]}

    def cancel(self, run: str) -> None:
        """See `JobRuns`."""
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


def _seen(run: Any, number: str) -> RunSeen:
    why = str(run.get("stateDetails") or "")
    return RunSeen(
        id=number,
        label=label_in(str(run.get("name") or "")),
        state=_STATES.get(run["state"], RunState.ACTIVE),
        why=why,
        exit_code=exit_code_in(why),
    )


def _parameters(engine: EmrServerlessEngine) -> str:
    """What `spark-submit` is told. No text of a configuration file can hold a space here."""
    size = (
        f"--conf spark.driver.cores={engine.vcpu} --conf spark.driver.memory={engine.memory}g "
        + _ALONE
    )
    if engine.environment is None:
        return size
    return f"{size} --conf spark.archives={engine.environment}#environment"
