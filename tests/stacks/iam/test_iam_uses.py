"""No right without a use: every granted action is called by our code or by someone named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stacks.iam.code_calls import actions_called
from tests.stacks.iam.iam_account import DeployedAccount
from tests.stacks.iam.iam_evaluator import listed
from tests.stacks.synthesis import ROOT, Assembly

pytestmark = pytest.mark.synth

TABLE = Path(__file__).with_name("iam_uses.md")
CONSTRUCTS = ROOT / "constructs" / "polynya_constructs"
# Part of the role's name; whoever is called like another has the same rights as that one.
WHO = {
    "cluster-cheap-clusternoderole": "node",
    "cluster-asleep-clusternoderole": "node",
    "cluster-steady-clusternoderole": "node",
    "agentnoderole": "network agent",
    "servernoderole": "server",
    "spotfallbackrole": "fallback",
    "wakerole": "wake",
    "sourcesrole": "looks",
    "sourcesproberole": "looks in the network",
    "arrivalhintsrole": "arrival hints",
    "figuresrole": "figures",
    "redshiftrole": "redshift",
    "snowflake-volume": "outside files",
    "snowflake-catalog": "snowflake catalog",
    "databricks-storage": "outside files",
    "databricks-catalog": "databricks catalog",
    "emrserverlessjobrole": "emr job",
    "jobsrole": "job",
    "firehoseclicksrole": "firehose",
    "firehoseordersrole": "firehose",
    "quicksightrole": "analyst",
    "sagemakerrole": "analyst",
    "lakeformationrole": "lake formation",
    "networkflowlogiamrole": "flow log",
    "customvpcrestrictdefaultsg": "closer of the default group",
}
FUNCTIONS = CONSTRUCTS / "functions"
CODE = {
    "node": [ROOT / "runtime" / "polynya"],
    "job": [ROOT / "runtime" / "polynya"],
    "network agent": [ROOT / "runtime" / "polynya"],
    "server": [ROOT / "runtime" / "polynya"],
    "fallback": [FUNCTIONS / "spot_fallback"],
    "wake": [FUNCTIONS / "wake" / "handler.py", FUNCTIONS / "wake" / "own_landing.py"],
    "looks": [FUNCTIONS / "wake" / "sources.py", FUNCTIONS / "wake" / "handler.py"],
    "looks in the network": [FUNCTIONS / "wake" / "probe.py"],
    "arrival hints": [FUNCTIONS / "wake" / "hints.py", FUNCTIONS / "wake" / "own_landing.py"],
    "figures": [FUNCTIONS / "figures"],
}


def reasoned() -> set[tuple[str, str]]:
    """Who and what of each line of the table."""
    lines = [line.strip("|").split("|") for line in TABLE.read_text().splitlines() if ":" in line]
    return {(who.strip(), action.strip()) for who, action, _ in (x for x in lines if len(x) == 3)}


def granted(account: DeployedAccount) -> set[tuple[str, str]]:
    """Who is granted which action in the stage `clustered`."""
    found = set()
    documents = {("analyst", str(key)): document for key, document in account.managed.items()}
    for arn, role in account.roles.items():
        name = arn.rpartition("/")[2]
        if name.startswith(("clustered-", "polynya-clustered-")):
            (who,) = [who for part, who in WHO.items() if part in name]
            documents |= {(who, f"{arn} {key}"): value for key, value in role.policies.items()}
    for (who, _), document in documents.items():
        for statement in document["Statement"]:
            if statement["Effect"] == "Allow":
                found |= {(who, action) for action in listed(statement["Action"])}
    return found


def unused(account: DeployedAccount) -> set[tuple[str, str]]:
    called = {(who, action) for who, sources in CODE.items() for action in actions_called(*sources)}
    return granted(account) - called - reasoned()


def test_every_right_is_used(assembly: Assembly) -> None:
    account = DeployedAccount(assembly.templates)

    assert unused(account) == set()
    assert reasoned() - granted(account) == set()


def test_the_code_says_what_it_calls() -> None:
    runtime = actions_called(*CODE["node"])

    assert {"s3:GetObject", "s3:PutObject", "s3:ListBucket", "glue:GetTables"} <= runtime
    assert "autoscaling:UpdateAutoScalingGroup" in actions_called(*CODE["fallback"])
    assert "autoscaling:SetDesiredCapacity" not in actions_called(*CODE["arrival hints"])
    assert "s3:DeleteObjectVersion" not in runtime


def test_a_right_too_many_is_caught(assembly: Assembly) -> None:
    account = DeployedAccount(assembly.templates)
    (fallback,) = [arn for arn in account.roles if "cheap-spotfallback" in arn]
    wide = {"Statement": [{"Effect": "Allow", "Action": "ec2:StopInstances", "Resource": "*"}]}
    account.roles[fallback].policies["planted"] = wide  # type: ignore[index]

    assert unused(account) == {("fallback", "ec2:StopInstances")}
