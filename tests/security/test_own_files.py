"""Logs are for the user who runs the command, whatever the umask of the machine."""

from __future__ import annotations

import os
from pathlib import Path

from polynya.cli.logs import logging_as
from polynya.cli.options import GlobalOptions
from polynya.cluster.submit.processes import ProcessRuns
from polynya.store.jobs import JobOrder, Label


def test_logs_are_readable_for_their_user_only(tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        with logging_as(GlobalOptions(log_file=tmp_path / "run.log")):
            pass
        runs = ProcessRuns(tmp_path / "work", ("true",))
        runs.submit(JobOrder(Label("scope", 0, "token"), "users/users", ()))
    finally:
        os.umask(before)

    assert (tmp_path / "run.log").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "work" / "jobs").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "work" / "jobs" / "scope.log").stat().st_mode & 0o777 == 0o600
