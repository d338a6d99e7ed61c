"""The edge of a real account: the CDK's command line, Athena, and fault injection."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import boto3

from polynya_constructs.packaging.dependencies import build_dependencies
from polynya_constructs.removal import REMOVAL_CONTEXT
from stacks.package import PACKAGES
from stacks.publish import archives, publish
from stacks.region import environment_region
from stacks.settings.cluster_checks import PROJECT
from stacks.settings.stage import StageConfig
from stacks.verify import athena, faults
from stacks.verify.edge import Outputs
from stacks.verify.run import Clock, StepError
from stacks.verify.steps import Fidelity
from stacks.verify.throwaway import NAME

FOLDER_CONTEXT: Final = "polynya:configuration"
"""Context value of `app.py`: the folder of the stage files."""


class Account:
    """An account, with the credentials of the environment."""

    endpoint: str | None = None

    def __init__(self, stage: StageConfig, clock: Clock, folder: Path) -> None:
        """Deploy `stage`, whose file lies in `folder`/config; outputs are written there, too."""
        self._stage, self._clock, self._folder = stage, clock, folder
        self.account = stage.account
        self.region = stage.region or environment_region() or ""
        self._session = boto3.Session(region_name=self.region or None)

    def fidelity(self, _step: str) -> tuple[Fidelity, str]:
        """Everything is real here."""
        return Fidelity.REAL, ""

    def client(self, service: str) -> Any:
        """A client of the session, made when it is asked for: credentials may be renewed."""
        return self._session.client(service)

    def publish(self) -> str:
        """Build what is missing, and upload it."""
        for architecture in self._stage.package_architectures:
            build_dependencies(PROJECT, PACKAGES, architecture)
        found = archives(self._stage, PROJECT, PACKAGES)
        return "; ".join(publish(self._session, self._stage, archive) for archive in found)

    def up(self) -> Outputs:
        """Deploy; the outputs by the last part of the path of their stack."""
        outputs = self._folder / "outputs.json"
        self._cdk("deploy", "--require-approval", "never", "--outputs-file", str(outputs))
        written: dict[str, dict[str, str]] = json.loads(outputs.read_text("utf-8"))
        prefix = f"polynya-{NAME}-"
        return {name.removeprefix(prefix).capitalize(): values for name, values in written.items()}

    def down(self) -> None:
        """Destroy every stack."""
        self._cdk("destroy", "--force")

    def landed(self, group: str) -> None:
        """S3 and EventBridge do it."""

    def rows(self, view: str) -> int | None:
        """Ask Athena."""
        return athena.rows(self.client, self._clock, view)

    def interrupt(self, instance: str) -> None:
        """Start an experiment for this one instance."""
        account = self.client("sts").get_caller_identity()["Account"]
        partition = self._session.get_partition_for_region(self.region)
        arn = f"arn:{partition}:ec2:{self.region}:{account}:instance/{instance}"
        faults.interrupt(self.client, self._clock, arn)

    def forget_faults(self) -> None:
        """Remove experiment and role."""
        faults.forget(self.client)

    def _cdk(self, verb: str, *options: str) -> None:
        context = (f"{FOLDER_CONTEXT}={self._folder / 'config'}", f"{REMOVAL_CONTEXT}={NAME}")
        command = ["npx", "--no-install", "cdk", "--no-notices", verb, f"{NAME}/*"]
        command += [part for value in context for part in ("-c", value)]
        command += ["--output", str(self._folder / "cdk.out"), *options]
        environment = {**os.environ, "CDK_DISABLE_CLI_TELEMETRY": "1", "AWS_REGION": self.region}
        if subprocess.run(command, cwd=PROJECT, env=environment, check=False).returncode:
            raise StepError(f"`cdk {verb}` failed; what it said stands above")
