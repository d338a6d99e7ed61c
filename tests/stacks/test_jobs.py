"""Services that a stage makes for the work of tasks: application, Glue job, and what nodes know."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.stacks.house_rules import resources
from tests.stacks.synthesis import Assembly

pytestmark = pytest.mark.synth


@pytest.fixture
def template(assembly: Assembly) -> dict[str, Any]:
    """A cluster with both services."""
    return assembly.templates["clustered/Cluster-asleep"]


def only(template: dict[str, Any], kind: str) -> dict[str, Any]:
    """The properties of the one resource of a kind."""
    (found,) = resources(template, kind).values()
    return found


def test_an_application_has_no_worker_before_a_job_and_stops_after_the_last(
    template: dict[str, Any],
) -> None:
    application = only(template, "AWS::EMRServerless::Application")

    assert application["ReleaseLabel"] == "emr-7.10.0"
    assert application["Architecture"] == "X86_64"
    assert "InitialCapacity" not in application
    assert application["AutoStopConfiguration"] == {"Enabled": True, "IdleTimeoutMinutes": 10}
    assert application["MaximumCapacity"]["Cpu"] == "16 vCPU"
    assert len(application["NetworkConfiguration"]["SubnetIds"]) >= 2


def test_a_glue_job_runs_the_same_script_with_the_same_archive(template: dict[str, Any]) -> None:
    job = only(template, "AWS::Glue::Job")

    assert (job["GlueVersion"], job["MaxRetries"], job["Command"]["Name"]) == ("5.0", 0, "glueetl")
    assert '.py"' in json.dumps(job["Command"]["ScriptLocation"])
    assert list(job["DefaultArguments"]) == ["--extra-files"]
    assert job["Name"] == "polynya-clustered-asleep"


def test_nodes_know_both_and_may_submit_to_them(template: dict[str, Any]) -> None:
    known = json.dumps(only(template, "AWS::EC2::LaunchTemplate"))
    rights = json.dumps(resources(template, "AWS::IAM::Policy"))

    assert "EMR_JOBS='" in known
    assert "GLUE_JOB=polynya-clustered-asleep" in known
    assert {one for one in ("SubmitToEmr", "PassJobRole", "SubmitToGlue") if one in rights} == {
        "SubmitToEmr", "PassJobRole", "SubmitToGlue",
    }  # fmt: skip


def test_a_cluster_without_jobs_makes_none(assembly: Assembly) -> None:
    cheap = assembly.templates["clustered/Cluster-cheap"]

    assert not resources(cheap, "AWS::EMRServerless::Application")
    assert not resources(cheap, "AWS::Glue::Job")
