"""What each step of the trial does. Everything that touches the world goes through the edge."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from stacks.verify import throwaway
from stacks.verify.edge import Edge, Outputs
from stacks.verify.leftovers import stacks_of
from stacks.verify.run import Action, Clock, StepError, until

MINUTE = 60.0
USERS = f"{throwaway.NAME}_shop.users"


class Trial:
    """The steps up to the tear-down."""

    def __init__(self, edge: Edge, clock: Clock, folder: Path) -> None:
        """Work in `folder`, where the project of the trial lies, too."""
        self._edge, self._clock, self._folder = edge, clock, folder
        self._outputs: Outputs = {}
        self._interrupted = ""

    def by_name(self) -> Mapping[str, Action]:
        """The action of each step."""
        steps: Sequence[Callable[[], str]] = (
            self.account, self.package, self.deploy, self.guard, self.push, self.land, self.wake,
            self.live, self.edit, self.interrupt, self.replace, self.resume,
        )  # fmt: skip
        return {step.__name__: step for step in steps}

    def account(self) -> str:
        """Refuse to start beside the remains of another run: they would be destroyed with ours."""
        if not self._edge.region:
            raise StepError("no region is known: set `region` of the stage, or AWS_REGION")
        account = self._edge.client("sts").get_caller_identity()["Account"]
        if self._edge.account not in (None, account):
            raise StepError(
                f"the credentials are of {account}, the stage is in {self._edge.account}"
            )
        there = stacks_of(self._edge.client)
        if there:
            raise StepError(
                f"{', '.join(there)} is there already; if no other run is at work, remove it "
                f"(docs/deploy.md, Tear down)"
            )
        return f"account {account}, {self._edge.region}"

    def package(self) -> str:
        """Make sure that nodes find their package."""
        return self._edge.publish()

    def deploy(self) -> str:
        """Deploy every stack."""
        self._outputs = self._edge.up()
        return f"{len(self._outputs)} stacks"

    def guard(self) -> str:
        """Write blindly below the coordination prefix; only a refusal passes."""
        bucket, key = self._storage["ConfigurationBucketName"], "coordination/verify"
        try:
            self._edge.client("s3").put_object(Bucket=bucket, Key=key, Body=b"blind")
        except ClientError as error:
            if error.response["Error"]["Code"] == "AccessDenied":
                return f"{key}: AccessDenied"
            raise
        raise StepError(f"a blind write to {key} was accepted")

    def push(self) -> str:
        """Push the example project with the command of the product."""
        project = throwaway.write_project(
            self._folder / "project",
            dict(self._storage),
            region=self._edge.region,
            endpoint=self._edge.endpoint,
        )
        command = [sys.executable, "-m", "polynya", "config", "push", "--project", str(project)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise StepError(f"`polynya config push` ended with {done.returncode}: {done.stderr}")
        return done.stdout.strip().splitlines()[-1]

    def land(self) -> str:
        """Upload the demo capture."""
        files = list(throwaway.captures())
        for key, body in files:
            self._put("LandingBucketName", key, body)
        self._edge.landed(throwaway.GROUP)
        return f"{len(files)} files, {sum(len(body) for _, body in files) / 1e6:.1f} MB"

    def wake(self) -> str:
        """Wait for the first node."""
        instance = until(self._clock, "a node in service", 20 * MINUTE, self._in_service)
        return f"{instance} is in service"

    def live(self) -> str:
        """Wait until the views have the rows of the source."""
        for view, wanted in throwaway.expected_rows().items():
            self._await_rows(view, wanted, 20 * MINUTE)
        return ", ".join(f"{view}: {rows}" for view, rows in throwaway.expected_rows().items())

    def edit(self) -> str:
        """Add a dataset to a task in the bucket, and wait for its rows."""
        task = throwaway.edited_task(self._folder / "project")
        self._put("ConfigurationBucketName", "project/current/tasks/users.yml", task)
        seen = until(self._clock, throwaway.EDITED, 10 * MINUTE, self._some_rows)
        return f"{throwaway.EDITED}: {seen} rows"

    def interrupt(self) -> str:
        """Take the node back, and wait until the group no longer has it."""
        self._interrupted = until(self._clock, "a node to take", 5 * MINUTE, self._in_service)
        self._edge.interrupt(self._interrupted)
        until(self._clock, "its end", 10 * MINUTE, self._is_gone)
        return f"{self._interrupted} is gone"

    def replace(self) -> str:
        """Wait for another node."""
        instance = until(self._clock, "another node in service", 20 * MINUTE, self._in_service)
        return f"{instance} in place of {self._interrupted}"

    def resume(self) -> str:
        """Land one more record, and wait for exactly one more row."""
        before = self._edge.rows(USERS) or 0
        self._put("LandingBucketName", *throwaway.one_more())
        self._edge.landed(throwaway.GROUP)
        self._await_rows(USERS, before + 1, 10 * MINUTE)
        for view, wanted in throwaway.expected_rows().items():
            self._await_rows(view, wanted, MINUTE)
        return f"{USERS}: {before} and one more"

    @property
    def _storage(self) -> Mapping[str, str]:
        return self._outputs["Storage"]

    def _put(self, bucket: str, key: str, body: bytes) -> None:
        self._edge.client("s3").put_object(Bucket=self._storage[bucket], Key=key, Body=body)

    def _in_service(self) -> str | None:
        """An instance of the group that serves, and is not the one that was taken."""
        serving = [each for each in self._instances() if each["LifecycleState"] == "InService"]
        ids = [str(each["InstanceId"]) for each in serving]
        return next((each for each in ids if each != self._interrupted), None)

    def _is_gone(self) -> bool | None:
        there = {instance["InstanceId"] for instance in self._instances()}
        return None if self._interrupted in there else True

    def _instances(self) -> list[dict[str, Any]]:
        answer = self._edge.client("autoscaling").describe_auto_scaling_groups(
            AutoScalingGroupNames=[throwaway.GROUP]
        )
        return [each for group in answer["AutoScalingGroups"] for each in group["Instances"]]

    def _some_rows(self) -> int | None:
        return self._edge.rows(throwaway.EDITED) or None

    def _await_rows(self, view: str, wanted: int, seconds: float) -> None:
        last: list[int | None] = [None]

        def there() -> bool | None:
            last[0] = self._edge.rows(view)
            return True if last[0] == wanted else None

        try:
            until(self._clock, f"{wanted} rows of {view}", seconds, there, every=15)
        except StepError as error:
            raise StepError(f"{error}; the last look found {last[0]}") from error
