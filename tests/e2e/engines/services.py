"""Stand-ins for EMR Serverless and Glue that really run what is submitted, as a process.

They check requests as the SDK does, take the script from where it was copied to, and give the
process the environment that `spark-submit` of the service would, with a Spark of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import botocore.session
from botocore.exceptions import ReadTimeoutError
from botocore.validate import validate_parameters

from tests.aws import client
from tests.oracle.packs.driver import environment

#: What the services set for their own Spark: the runtime must not meet any of it.
_OF_THE_SERVICE = {"SPARK_HOME": "/usr/lib/spark", "PYSPARK_GATEWAY_PORT": "1"}


class Processes:
    """Runs scripts of a bucket; each run has a folder with a Python that finds the package."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self._folder, self._s3 = folder, client("s3", endpoint)
        self.started: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, script: str, arguments: list[str]) -> str:
        run = f"{len(self.started) + 1:08d}"
        home = self._folder / run
        (home / "environment" / "bin").mkdir(parents=True)
        bucket, _, key = script.removeprefix("s3://").partition("/")
        self._s3.download_file(bucket, key, str(home / "entry.py"))
        python = home / "environment" / "bin" / "python"
        paths = environment()["PYTHONPATH"]
        python.write_text(f'#!/bin/sh\nPYTHONPATH="{paths}" exec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        with (home / "log").open("wb") as log:
            self.started[run] = subprocess.Popen(
                [sys.executable, "entry.py", *arguments],
                cwd=home,
                env={**os.environ, **_OF_THE_SERVICE, "PYTHONPATH": "/usr/lib/spark/python"},
                stdout=log,
                stderr=log,
            )
        return run

    def code(self, run: str) -> int | None:
        return self.started[run].poll()

    def log(self, run: str) -> str:
        return (self._folder / run / "log").read_text("utf-8")

    def end(self) -> None:
        for process in self.started.values():
            process.kill()
            process.wait()


class Emr:
    """A client of EMR Serverless. `lose` answers: the next submissions are taken all the same."""

    def __init__(self, processes: Processes, *, lose: int = 0) -> None:
        self.processes, self.lose = processes, lose
        self.requests: list[dict[str, Any]] = []
        self._tokens: dict[str, str] = {}
        self._cancelled: set[str] = set()
        self.on_start: Callable[[], None] = lambda: None

    def start_job_run(self, **asked: Any) -> Any:
        _check("emr-serverless", "StartJobRun", asked)
        token = asked["clientToken"]
        if token not in self._tokens:
            self.on_start()
            self.requests.append(asked)
            submitted = asked["jobDriver"]["sparkSubmit"]
            arguments = submitted["entryPointArguments"]
            self._tokens[token] = self.processes.start(submitted["entryPoint"], arguments)
        self._answer()
        return {"jobRunId": self._tokens[token]}

    def get_job_run(self, **asked: Any) -> Any:
        _check("emr-serverless", "GetJobRun", asked)
        return {"jobRun": self._shown(asked["jobRunId"])}

    def list_job_runs(self, **asked: Any) -> Any:
        _check("emr-serverless", "ListJobRuns", asked)
        return {"jobRuns": [{"id": run, **self._shown(run)} for run in self._tokens.values()]}

    def cancel_job_run(self, **asked: Any) -> Any:
        _check("emr-serverless", "CancelJobRun", asked)
        self._cancelled.add(asked["jobRunId"])
        self.processes.started[asked["jobRunId"]].kill()
        return {}

    def _answer(self) -> None:
        if self.lose:
            self.lose -= 1
            raise ReadTimeoutError(endpoint_url="emr-serverless")

    def _shown(self, run: str) -> dict[str, Any]:
        code = self.processes.code(run)
        numbers = list(self._tokens.values())
        name = self.requests[numbers.index(run)]["name"]
        if code is None:
            return {"name": name, "state": "RUNNING"}
        if run in self._cancelled:
            return {"name": name, "state": "CANCELLED"}
        said = f"Job failed, please check complete logs. ExitCode: {code}. Last few exceptions:"
        state = "SUCCESS" if code == 0 else "FAILED"
        return {"name": name, "state": state, "stateDetails": said if code else ""}


class Glue:
    """A client of Glue with one job. It has no tokens: what is asked twice runs twice."""

    def __init__(self, processes: Processes, script: str, *, lose: int = 0) -> None:
        self.processes, self.lose = processes, lose
        self._script = script
        self.requests: dict[str, dict[str, Any]] = {}
        self._stopped: set[str] = set()

    def start_job_run(self, **asked: Any) -> Any:
        _check("glue", "StartJobRun", asked)
        pairs = [*asked["Arguments"].items(), ("--JOB_NAME", asked["JobName"])]
        run = self.processes.start(self._script, [part for pair in pairs for part in pair])
        self.requests[run] = asked
        if self.lose:
            self.lose -= 1
            raise ReadTimeoutError(endpoint_url="glue")
        return {"JobRunId": run}

    def get_job_run(self, **asked: Any) -> Any:
        _check("glue", "GetJobRun", asked)
        return {"JobRun": self._shown(asked["RunId"])}

    def get_job_runs(self, **asked: Any) -> Any:
        _check("glue", "GetJobRuns", asked)
        return {"JobRuns": [self._shown(run) for run in reversed(self.requests)]}

    def batch_stop_job_run(self, **asked: Any) -> Any:
        _check("glue", "BatchStopJobRun", asked)
        for run in asked["JobRunIds"]:
            self._stopped.add(run)
            self.processes.started[run].kill()
        return {"Errors": []}

    def _shown(self, run: str) -> dict[str, Any]:
        code = self.processes.code(run)
        shown = {
            "Id": run,
            "StartedOn": datetime.now(UTC),
            "Arguments": self.requests[run]["Arguments"],
        }
        if code is None:
            return {**shown, "JobRunState": "RUNNING"}
        if run in self._stopped:
            return {**shown, "JobRunState": "STOPPED"}
        if code == 0:
            return {**shown, "JobRunState": "SUCCEEDED"}
        message = f"Command failed with exit code {code}"
        return {**shown, "JobRunState": "FAILED", "ErrorMessage": message}


def _check(service: str, operation: str, asked: dict[str, Any]) -> None:
    """Refuse what the SDK would."""
    model = botocore.session.get_session().get_service_model(service)
    shape = model.operation_model(operation).input_shape
    assert shape is not None
    validate_parameters(asked, shape)
