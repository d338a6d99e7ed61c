"""The CDK app: the stages and the pipeline that the files in `config/` describe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import aws_cdk as cdk
import cdk_nag

from polynya.model.errors import ConfigErrors, DependencyError
from stacks.fetched import check_packages
from stacks.pipeline import PipelineStack, pipeline_environment
from stacks.policy_limits import PolicyLimits
from stacks.settings.loader import Deployment, load_deployment
from stacks.settings.quotas import quota_warnings
from stacks.stage import PolynyaStage
from stacks.tags import tag_application

BOUNDARY_CONTEXT: Final = "permissions_boundary"
"""Context value with the name or the ARN of the policy that bounds every role."""

DEPLOYED_CONTEXT: Final = "polynya:deployed"
"""Context value with the stage that is deployed next: its package has to be in place."""

CONFIGURATION: Final = Path(__file__).resolve().parent / "config"
CONFIGURATION_CONTEXT: Final = "polynya:configuration"
"""Context value with another folder of stage files; `make verify-deploy` has one of its own."""


def build_app(app: cdk.App, deployment: Deployment) -> cdk.App:
    """Add stages and pipeline to `app`, whose synthesis fails on what cdk-nag finds."""
    bound_roles(app)
    for stage in deployment.stages:
        PolynyaStage(app, settings=stage)
    for short, said in quota_warnings(deployment.stages):
        cdk.Annotations.of(app.node.find_child(short.name)).add_warning_v2("polynya:quota", said)
    if pipeline := deployment.pipeline:
        stages = {stage.name: stage for stage in deployment.stages}
        PipelineStack(
            app,
            "Pipeline",
            settings=pipeline,
            stages=stages,
            stack_name="polynya-pipeline",
            description="Polynya: promotes the stages",
            env=pipeline_environment(pipeline, stages),
        )
    tag_application(app)
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app), PolicyLimits())
    return app


def bound_roles(app: cdk.App) -> None:
    """Let the CDK put the permissions boundary that the context names on every role of the app.

    Without `-c permissions_boundary=…` it is the CDK's own context value that counts, if any.
    """
    boundary = app.node.try_get_context(BOUNDARY_CONTEXT)
    if boundary:
        kind = "arn" if boundary.startswith("arn:") else "name"
        app.node.set_context("@aws-cdk/core:permissionsBoundary", {kind: boundary})


def main() -> int:
    """Synthesize; wrong files are reported as the runtime reports them, and end with code 2."""
    app = cdk.App()
    folder = app.node.try_get_context(CONFIGURATION_CONTEXT)
    try:
        deployment = load_deployment(Path(folder) if folder else CONFIGURATION)
    except ConfigErrors as errors:
        print(errors.render(), file=sys.stderr)
        return errors.exit_code
    build_app(app, deployment).synth()
    if deployed := app.node.try_get_context(DEPLOYED_CONTEXT):
        try:
            check_packages(Path(app.outdir), deployed)
        except DependencyError as error:
            print(error.render(), file=sys.stderr)
            return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
