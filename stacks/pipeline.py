"""Promotion: one synthesis for all stages, deployed one after the other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import pipelines
from constructs import Construct

from polynya_constructs.buckets import AccessLogBucket, DataBucket
from polynya_constructs.cluster.strategies import STRATEGIES
from polynya_constructs.removal import KEPT
from stacks.pipeline_acknowledgements import acknowledge_generated_roles, acknowledge_trial
from stacks.settings.cluster_checks import PROJECT
from stacks.settings.pipeline import PipelineConfig, Promotion, Source
from stacks.settings.stage import StageConfig
from stacks.stage import PolynyaStage

_QUALIFIER: Final = cdk.DefaultStackSynthesizer.DEFAULT_QUALIFIER
_INSTALL: Final = "npm install -g aws-cdk"
_ASSETS_CLI: Final = "4.7.3"
"""Version of the program that publishes assets; the library's default is the newest of the day."""

_TRIAL_TIMEOUT: Final = cdk.Duration.minutes(45)
"""Of a trial of at most 15 minutes, and of installing what it runs."""

_TOOLS = {"phases": {"install": {"runtime-versions": {"python": "3.11", "nodejs": "22"}}}}


class PipelineStack(cdk.Stack):
    """A pipeline that follows a branch: tests and one synthesis, then stage after stage.

    It first updates itself. Whatever a stage would gain in permissions or open to the network
    someone has to approve; so does a stage that asks for approval.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: PipelineConfig,
        stages: dict[str, StageConfig],
        **options: Any,
    ) -> None:
        """Create the stack; `stages` are by name, `options` those of `cdk.Stack`."""
        super().__init__(scope, id_, **options)
        artifacts, replicas = self._artifacts(), self._replicas(settings, stages)
        source = _source(settings.source)
        pipeline = pipelines.CodePipeline(
            self,
            "Pipeline",
            synth=_synth(source, self._publishing_roles(settings, stages)),
            artifact_bucket=None if replicas else artifacts,
            cross_region_replication_buckets={self.region: artifacts, **replicas}
            if replicas
            else None,
            cli_version=_locked_cli(),
            cdk_assets_cli_version=_ASSETS_CLI,
            code_build_defaults=pipelines.CodeBuildOptions(
                build_environment=codebuild.BuildEnvironment(
                    build_image=codebuild.LinuxBuildImage.STANDARD_7_0,
                    compute_type=codebuild.ComputeType.MEDIUM,
                )
            ),
        )
        account, _ = settings.environment(stages)
        trials: list[tuple[pipelines.CodeBuildStep, Sequence[str]]] = []
        for promotion in settings.promotions:
            promoted = stages[promotion.stage]
            stage = PolynyaStage(self, settings=promoted)
            post = []
            if groups := tried_groups(promotion, promoted, account):
                trials.append(self._trial(promoted, groups, source))
                post = [trials[-1][0]]
            pipeline.add_stage(stage, pre=_gates(stage, promotion), post=post)
        pipeline.build_pipeline()
        _pin_security_check(self)
        acknowledge_generated_roles(pipeline, replicas.values())
        for step, wildcards in trials:
            acknowledge_trial(step.project, wildcards)

    def _publishing_roles(
        self, settings: PipelineConfig, stages: dict[str, StageConfig]
    ) -> list[str]:
        """ARNs of the roles that may put a package beside the assets of each stage."""
        found = []
        for promotion in settings.promotions:
            stage = stages[promotion.stage]
            account, region = stage.account or self.account, stage.region or self.region
            name = f"cdk-{_QUALIFIER}-file-publishing-role-{account}-{region}"
            found.append(
                self.format_arn(
                    service="iam", region="", account=account, resource="role", resource_name=name
                )
            )
        return list(dict.fromkeys(found))

    def _trial(
        self, stage: StageConfig, clusters: Sequence[str], source: pipelines.CodePipelineSource
    ) -> tuple[pipelines.CodeBuildStep, Sequence[str]]:
        """A build in which nodes of groups that are empty try what was deployed to a stage.

        Also returns the ARNs with a wildcard in its rights.
        """

        def arn(service: str, resource: str, name: str) -> str:
            return self.format_arn(
                service=service,
                region=stage.region or self.region,
                account=stage.account or self.account,
                resource=resource,
                resource_name=name,
                arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
            )

        prefix = f"polynya-{stage.name}"
        groups = [
            arn("autoscaling", "autoScalingGroup", f"*:autoScalingGroupName/{prefix}-{name}")
            for name in clusters
        ]
        # CloudFormation names a log group after its stack and its logical id.
        reports = [
            arn("logs", "log-group", f"{prefix}-cluster-{name}-AgentLog*:log-stream:*/failed")
            for name in clusters
        ]
        step = pipelines.CodeBuildStep(
            "Trial",
            input=source,
            partial_build_spec=codebuild.BuildSpec.from_object(_TOOLS),
            commands=[f"make trial STAGE={stage.name}"],
            timeout=_TRIAL_TIMEOUT,
            role_policy_statements=[
                iam.PolicyStatement(
                    sid="AskForOneNode",
                    actions=["autoscaling:SetDesiredCapacity"],
                    resources=groups,
                ),
                iam.PolicyStatement(
                    sid="ReadWhyANodeDidNotBoot", actions=["logs:GetLogEvents"], resources=reports
                ),
                iam.PolicyStatement(
                    sid="ReadWhatCannotBeScoped",
                    actions=[
                        "autoscaling:DescribeAutoScalingGroups",
                        "autoscaling:DescribeScalingActivities",
                        "ec2:DescribeLaunchTemplateVersions",
                    ],
                    resources=["*"],
                ),
            ],
        )
        return step, (*groups, *reports)

    def _replicas(
        self, settings: PipelineConfig, stages: Mapping[str, StageConfig]
    ) -> dict[str, s3.IBucket]:
        """Return the artifact bucket of each other region that the pipeline deploys to."""
        promoted = [stages[promotion.stage].region for promotion in settings.promotions]
        regions = [region for region in promoted if region not in (None, self.region)]
        buckets: dict[str, s3.IBucket] = {}
        for region in dict.fromkeys(region for region in regions if region):
            replica = ArtifactsStack(
                cdk.Stage.of(self) or self,
                f"Pipeline-{region}",
                stack_name="polynya-pipeline-artifacts",
                description="Polynya: artifacts of the pipeline, for stages in this region",
                env=cdk.Environment(account=self.account, region=region),
            )
            self.add_stack_dependency(replica)
            buckets[region] = replica.bucket
        return buckets

    def _artifacts(self) -> s3.IBucket:
        """Return a bucket with a key of ours, which another account can be allowed to use."""
        key = kms.Key(self, "ArtifactKey", enable_key_rotation=True, removal_policy=KEPT)
        logs = AccessLogBucket(self, "AccessLogs")
        return DataBucket(self, "Artifacts", encryption_key=key, access_logs=logs).bucket


class ArtifactsStack(cdk.Stack):
    """The artifacts of a pipeline in another region than its own: `bucket`, with its own key."""

    def __init__(self, scope: Construct, id_: str, **options: Any) -> None:
        """Create the stack; `options` are those of `cdk.Stack`."""
        super().__init__(scope, id_, **options)
        key = kms.Key(self, "ArtifactKey", enable_key_rotation=True, removal_policy=KEPT)
        # The pipeline names it in another region, where CloudFormation cannot look up its id.
        alias = key.add_alias("alias/polynya-pipeline")
        logs = AccessLogBucket(self, "AccessLogs")
        name = f"polynya-pipeline-{self.account}-{self.region}"
        artifacts = DataBucket(self, "Artifacts", encryption_key=alias, access_logs=logs, name=name)
        self.bucket = artifacts.bucket


def pipeline_environment(
    settings: PipelineConfig, stages: Mapping[str, StageConfig]
) -> cdk.Environment:
    """Return where the pipeline is; `stages` are by name."""
    account, region = settings.environment(stages)
    return cdk.Environment(account=account, region=region)


def tried_groups(promotion: Promotion, stage: StageConfig, account: str | None) -> list[str]:
    """The clusters of a stage that a build asks for a node, by name.

    Only a group that may be empty needs it, and a build has no rights in another account.

    Args:
        promotion: how the stage is deployed.
        stage: the stage.
        account: of the pipeline; None: that of the credentials.
    """
    if not promotion.trial or stage.account not in (None, account):
        return []
    return [each.name for each in stage.clusters if STRATEGIES[each.strategy].starts_from_zero]


def _locked_cli() -> str:
    """The version of the CDK's command line in the lock file: what people run, builds run."""
    lock = json.loads((PROJECT / "package-lock.json").read_text(encoding="utf-8"))
    return str(lock["packages"]["node_modules/aws-cdk"]["version"])


def _pin_security_check(stack: cdk.Stack) -> None:
    """Let the check of permissions install that version, too; the library has no option for it.

    Raises:
        LookupError: the library no longer installs it in these words; look at what it does now.
    """
    for project in stack.node.find_all():
        if isinstance(project, codebuild.CfnProject) and "SecurityCheck" in project.node.path:
            source = stack.resolve(project.source)
            text = json.dumps(source["buildSpec"])
            if _INSTALL not in text:
                raise LookupError(f"{project.node.path} does not run `{_INSTALL}`")
            pinned = text.replace(_INSTALL, f"{_INSTALL}@{_locked_cli()}")
            project.add_property_override("Source.BuildSpec", json.loads(pinned))
            return
    raise LookupError("the pipeline has no check of permissions")


def _source(source: Source) -> pipelines.CodePipelineSource:
    return pipelines.CodePipelineSource.connection(
        source.repository,
        source.branch,
        connection_arn=source.connection_arn,
        # A clone, and not a zip: with the history, and the modes of files.
        code_build_clone_output=True,
    )


def _synth(
    source: pipelines.CodePipelineSource, publishing_roles: list[str]
) -> pipelines.CodeBuildStep:
    return pipelines.CodeBuildStep(
        "Synth",
        input=source,
        partial_build_spec=codebuild.BuildSpec.from_object(_TOOLS),
        commands=[
            "make test",
            "make package",
            ".venv/bin/python -m stacks.publish --promoted",
            "make synth",
        ],
        role_policy_statements=[
            iam.PolicyStatement(
                sid="PublishPackages", actions=["sts:AssumeRole"], resources=publishing_roles
            )
        ],
        primary_output_directory="cdk.out",
    )


def _gates(stage: cdk.Stage, promotion: Promotion) -> list[pipelines.Step]:
    gates: list[pipelines.Step] = [
        pipelines.ConfirmPermissionsBroadening("Permissions", stage=stage)
    ]
    if promotion.approval:
        gates.append(pipelines.ManualApprovalStep("Approve"))
    return gates
