"""Why findings of cdk-nag about the roles that CDK Pipelines makes stay as they are.

Each finding is named whole, so that a new or changed statement of the library fails synthesis.
"""

from __future__ import annotations

from typing import Final

import aws_cdk as cdk
from constructs import IConstruct

_LOGS: Final = "arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:/aws/codebuild"
_REPORTS: Final = "arn:<AWS::Partition>:codebuild:<AWS::Region>:<AWS::AccountId>:report-group"
_PROJECTS: Final = (
    "PipelineBuildSynthCdkBuildProject6BEFA8E6",
    "PipelineUpdatePipelineSelfMutationDAA41400",
    "PipelinePipelinesSecurityCheckCDKSecurityCheck1D09275A",
)
_AUTO_APPROVE: Final = "PipelinePipelinesSecurityCheckCDKPipelinesAutoApprove438244C8"
_BASIC_EXECUTION: Final = (
    "arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
)

_REASONS: Final[dict[str, tuple[str, ...]]] = {
    "grants of the CDK on the one artifact bucket and its key": (
        *(f"IAM5[Action::s3:{verb}*]" for verb in
          ("Abort", "DeleteObject", "GetBucket", "GetObject", "List")),
        "IAM5[Action::kms:GenerateDataKey*]",
        "IAM5[Action::kms:ReEncrypt*]",
        "IAM5[Resource::<ArtifactsBucket88671897.Arn>/*]",
    ),
    "a build writes its own logs and reports, whose names end in its run": (
        *(f"IAM5[Resource::{_LOGS}/<{project}>:*]" for project in _PROJECTS),
        *(f"IAM5[Resource::{_REPORTS}/<{project}>-*]" for project in _PROJECTS),
        f"IAM5[Resource::{_LOGS}/*]",
        f"IAM5[Resource::{_REPORTS}/*]",
    ),
    "the roles of the CDK bootstrap, narrowed by a condition on their tag": (
        "IAM5[Resource::arn:*:iam::<AWS::AccountId>:role/*]",
    ),
    "statements of CDK Pipelines: describe stacks and list buckets, start the builds of pipelines, "
    "and approvals and bootstrap roles, which a condition on their tag narrows": (
        "IAM5[Resource::*]",
    ),
    "the security check calls every version of its one function": (
        f"IAM5[Resource::<{_AUTO_APPROVE}.Arn>:*]",
    ),
    "that function writes its log with the managed policy that AWS recommends for it": (
        f"IAM4[Policy::{_BASIC_EXECUTION}]",
    ),
}  # fmt: skip


def acknowledge_generated_roles(pipeline: IConstruct) -> None:
    """Leave the reasons at a pipeline; they count for everything below it."""
    for reason, findings in _REASONS.items():
        for finding in findings:
            cdk.Validations.of(pipeline).acknowledge(
                cdk.Acknowledgment(id=f"AwsSolutions-{finding}", reason=reason)
            )
