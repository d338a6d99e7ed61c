"""Why findings of cdk-nag about the roles that CDK Pipelines makes stay as they are.

Each finding is named whole, so that a new or changed statement of the library fails synthesis.
Partition, account and region stand in it as they do in the template: as references, or literally
where the stack names its environment.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

from polynya_constructs.grants import shown

_LOGS: Final = "arn:{partition}:logs:{region}:{account}:log-group:/aws/codebuild"
_REPORTS: Final = "arn:{partition}:codebuild:{region}:{account}:report-group"
_PROJECTS: Final = (
    "PipelineBuildSynthCdkBuildProject6BEFA8E6",
    "PipelineUpdatePipelineSelfMutationDAA41400",
    "PipelinePipelinesSecurityCheckCDKSecurityCheck1D09275A",
)
_AUTO_APPROVE: Final = "PipelinePipelinesSecurityCheckCDKPipelinesAutoApprove438244C8"
# The CDK writes the partition of its own policies as a reference everywhere.
_BASIC_EXECUTION: Final = (
    "arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
)

_OWN_LOGS: Final = "a build writes its own logs and reports, whose names end in its run"
_TRIED: Final = (
    "ARNs of groups and names of log groups hold an id that only AWS knows; their names are given"
)

_REASONS: Final[dict[str, tuple[str, ...]]] = {
    "grants of the CDK on the one artifact bucket and its key": (
        *(f"IAM5[Action::s3:{verb}*]" for verb in
          ("Abort", "DeleteObject", "GetBucket", "GetObject", "List")),
        "IAM5[Action::kms:GenerateDataKey*]",
        "IAM5[Action::kms:ReEncrypt*]",
        "IAM5[Resource::<ArtifactsBucket88671897.Arn>/*]",
    ),
    _OWN_LOGS: (
        *(f"IAM5[Resource::{_LOGS}/<{project}>:*]" for project in _PROJECTS),
        *(f"IAM5[Resource::{_REPORTS}/<{project}>-*]" for project in _PROJECTS),
        f"IAM5[Resource::{_LOGS}/*]",
        f"IAM5[Resource::{_REPORTS}/*]",
    ),
    "the roles of the CDK bootstrap, narrowed by a condition on their tag": (
        "IAM5[Resource::arn:*:iam::{account}:role/*]",
    ),
    "statements of CDK Pipelines: describe stacks and list buckets, start the builds of pipelines, "
    "and approvals and bootstrap roles, which a condition on their tag narrows; and of a trial, "
    "what it describes of groups, which cannot be narrowed": (
        "IAM5[Resource::*]",
    ),
    "the security check calls every version of its one function": (
        f"IAM5[Resource::<{_AUTO_APPROVE}.Arn>:*]",
    ),
    "that function writes its log with the managed policy that AWS recommends for it": (
        f"IAM4[Policy::{_BASIC_EXECUTION}]",
    ),
}  # fmt: skip


_REPLICAS: Final = "grants of the CDK on the artifact bucket of another region"


def acknowledge_generated_roles(pipeline: IConstruct, replicas: Iterable[s3.IBucket]) -> None:
    """Leave the reasons at a pipeline; they count for everything below it.

    `replicas` are the artifact buckets in other regions.
    """
    stack = cdk.Stack.of(pipeline)
    values = {"partition": stack.partition, "account": stack.account, "region": stack.region}
    written = {name: shown(stack.resolve(value)) for name, value in values.items()}
    objects = [shown(stack.resolve(bucket.arn_for_objects("*"))) for bucket in replicas]
    reasons = {**_REASONS, _REPLICAS: tuple(f"IAM5[Resource::{name}]" for name in objects)}
    for reason, findings in reasons.items():
        for finding in findings:
            cdk.Validations.of(pipeline).acknowledge(
                cdk.Acknowledgment(id=f"AwsSolutions-{finding.format(**written)}", reason=reason)
            )


def acknowledge_trial(project: codebuild.IProject, wildcards: Iterable[str]) -> None:
    """Leave the reasons at the build that tries what was deployed to a stage.

    `wildcards` are the resources with a wildcard in its rights.
    """
    stack = cdk.Stack.of(project)
    for arn in wildcards:
        _acknowledge(project, shown(stack.resolve(arn)), _TRIED)
    values = {"partition": stack.partition, "account": stack.account, "region": stack.region}
    written = {name: shown(stack.resolve(value)) for name, value in values.items()}
    name = shown(stack.resolve(project.project_name))
    for pattern in (f"{_LOGS}/{name}:*", f"{_REPORTS}/{name}-*"):
        _acknowledge(project, pattern.format(**written), _OWN_LOGS)


def _acknowledge(at: IConstruct, resource: str, reason: str) -> None:
    finding = cdk.Acknowledgment(id=f"AwsSolutions-IAM5[Resource::{resource}]", reason=reason)
    cdk.Validations.of(at).acknowledge(finding)
