"""A stack whose first creation failed is created by the next `make deploy`, protected or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stacks.failed import release_failed
from tests.stacks.synthesis import Assembly

pytestmark = pytest.mark.synth


class CloudFormation:
    """Stacks as CloudFormation and the CDK's command line treat them.

    `deploy` is what `FullCloudFormationDeployment` does (aws-cdk 2.1148.1): it deletes a stack
    whose creation failed, with a plain DeleteStack; and it protects a stack before the change set
    is carried out, so that the protection stays when that fails.
    """

    def __init__(self) -> None:
        self.stacks: dict[str, dict[str, Any]] = {}

    def deploy(self, name: str, *, protected: bool, fails: bool = False) -> str:
        stack = self.stacks.get(name)
        if stack and stack["StackStatus"] in ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED"):
            if stack["EnableTerminationProtection"]:
                return "cannot be deleted while TerminationProtection is enabled"
            del self.stacks[name]
        creates = name not in self.stacks
        stack = self.stacks.setdefault(name, {"StackName": name})
        stack["EnableTerminationProtection"] = protected
        stack["StackStatus"] = f"{'' if creates else 'UPDATE_'}" + (
            "ROLLBACK_COMPLETE" if fails else "COMPLETE" if not creates else "CREATE_COMPLETE"
        )
        return stack["StackStatus"]

    def get_paginator(self, operation: str) -> CloudFormation:
        assert operation == "describe_stacks"
        return self

    def paginate(self) -> Iterator[dict[str, Any]]:
        yield {"Stacks": list(self.stacks.values())}

    def update_termination_protection(
        self, *, StackName: str, EnableTerminationProtection: bool
    ) -> None:
        self.stacks[StackName]["EnableTerminationProtection"] = EnableTerminationProtection


def test_every_stack_is_created_again_after_its_first_creation_failed(assembly: Assembly) -> None:
    protected = {
        path: flag for path, flag in assembly.protected.items() if path.startswith("clustered/")
    }
    assert any(protected.values())
    for path, flag in protected.items():
        aws, name = CloudFormation(), f"polynya-{path.lower().replace('/', '-')}"

        assert aws.deploy(name, protected=flag, fails=True) == "ROLLBACK_COMPLETE"
        # Without the step before it, the next deployment would fail for ever.
        if flag:
            assert "TerminationProtection" in aws.deploy(name, protected=flag)
        assert release_failed(aws, "clustered") == [name] * flag
        assert aws.deploy(name, protected=flag) == "CREATE_COMPLETE"
        assert aws.stacks[name]["EnableTerminationProtection"] == flag


def test_the_protection_of_everything_else_stays() -> None:
    aws = CloudFormation()
    aws.deploy("polynya-dev-storage", protected=True)
    aws.deploy("polynya-dev-storage", protected=True, fails=True)
    aws.deploy("polynya-prod-storage", protected=True, fails=True)

    assert release_failed(aws, "dev") == []
    assert all(stack["EnableTerminationProtection"] for stack in aws.stacks.values())
