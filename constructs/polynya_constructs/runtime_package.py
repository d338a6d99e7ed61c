"""What nodes and jobs fetch: the runtime's code and its dependencies, as assets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from polynya_constructs.cluster.instance_types import Architecture
from polynya_constructs.grants import allow
from polynya_constructs.packaging.job_environment import job_environment
from polynya_constructs.packaging.package import Archive, Dependencies, write_code

NOT_BUILT = "0" * 64
"""The digest in a template that was synthesized without the package: no file has it."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file in the CDK's bucket of assets: its address, its name in policies, its SHA-256."""

    url: str
    arn: str
    sha256: str


class RuntimePackage(Construct):
    """The code as an asset, and the dependencies by their digest in the bucket of assets.

    The code is packed at every synthesis and named by its content. The dependencies are built by
    `make package` and put into the bucket by `make publish`, not with the assembly: they have 900
    MB, and a pipeline hands the assembly to CloudFormation, which takes 256 MB ("Quotas in AWS
    CodePipeline"). Both digests get into the user data of whoever boots from them, so that new
    ones change its launch template. `code` and `dependencies` are what to fetch.

    Without built dependencies the synthesis warns, and publishing the assets, the first thing
    that a deployment does, fails with POLYNYA-STG-004.

    Example:
        >>> RuntimePackage(
        ...     stack, "Runtime", architecture=Architecture.ARM64, project=project, folder=packages
        ... )
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        architecture: Architecture,
        project: Path,
        folder: Path,
    ) -> None:
        """Create the assets.

        Args:
            scope: the parent.
            id_: unique below the parent.
            architecture: of the nodes.
            project: with the lock files and `runtime/`.
            folder: where `make package` puts what it builds.

        Raises:
            OSError: a lock file or the code cannot be read, or the folder not written.
        """
        super().__init__(scope, id_)
        self.code = _asset(self, "Code", write_code(project, folder))
        dependencies = Dependencies.of(project, folder, architecture)
        if archive := dependencies.built():
            self.dependencies = _published(self, archive)
        else:
            self.dependencies = _not_built(self, dependencies.name, architecture)

    def grant_read(self, role: iam.Role) -> None:
        """Let `role` fetch these two files, and nothing else of the bucket."""
        allow(
            role,
            "FetchRuntime",
            actions=["s3:GetObject"],
            resources=[self.code.arn, self.dependencies.arn],
        )


class JobPackage(Construct):
    """The script of jobs as an asset, and their environment by its digest in the bucket of assets.

    As for `RuntimePackage`, `make package` builds the environment and `make publish` uploads it.
    `script` and `environment` are what jobs of EMR Serverless and Glue fetch.

    Example:
        >>> JobPackage(
        ...     stack, "Jobs", architecture=Architecture.X86_64, project=project, folder=packages
        ... )
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        architecture: Architecture,
        project: Path,
        folder: Path,
    ) -> None:
        """Create the asset; for the arguments and errors see `RuntimePackage`."""
        super().__init__(scope, id_)
        script = assets.Asset(self, "Script", path=str(project / _SCRIPT))
        self.script = _fetched(self, script.s3_bucket_name, script.s3_object_key, NOT_BUILT)
        dependencies = Dependencies.of(project, folder, architecture)
        kept = job_environment(folder, dependencies, write_code(project, folder))
        archive = kept.built()
        self.environment = (
            _published(self, archive) if archive else _not_built(self, kept.name, architecture)
        )

    def grant_read(self, role: iam.Role) -> None:
        """Let `role` fetch these two files, and nothing else of the bucket."""
        allow(
            role,
            "FetchJobs",
            actions=["s3:GetObject"],
            resources=[self.script.arn, self.environment.arn],
        )


_SCRIPT = "runtime/polynya/cluster/submit/entry.py"


def _asset(scope: Construct, id_: str, archive: Archive) -> Fetched:
    asset = assets.Asset(scope, id_, path=str(archive.path), asset_hash=archive.name)
    return _fetched(scope, asset.s3_bucket_name, asset.s3_object_key, archive.sha256)


def _published(scope: Construct, archive: Archive) -> Fetched:
    bucket = cdk.Fn.sub(
        cdk.DefaultStackSynthesizer.DEFAULT_FILE_ASSETS_BUCKET_NAME.replace(
            "${Qualifier}", cdk.DefaultStackSynthesizer.DEFAULT_QUALIFIER
        )
    )
    return _fetched(scope, bucket, archive.key, archive.sha256)


def _not_built(scope: Construct, name: str, architecture: Architecture) -> Fetched:
    fix = f"make package ARCH={architecture}"
    cdk.Annotations.of(scope).add_warning_v2(
        "polynya:package",
        f"the dependencies of {architecture} nodes are not built, so this cannot be deployed; "
        f"fix: {fix}",
    )
    refusal = f"error[POLYNYA-STG-004]: the package of {architecture} nodes is not built\n"
    refusal += f"  state: nothing of this stack was deployed\n  fix: {fix}"
    # An asset that is made when it is published; here that says what to do instead.
    location = cdk.Stack.of(scope).synthesizer.add_file_asset(
        source_hash=name, executable=["python3", "-c", f"raise SystemExit({refusal!r})"]
    )
    return _fetched(scope, location.bucket_name, location.object_key, NOT_BUILT)


def _fetched(scope: Construct, bucket: str, key: str, sha256: str) -> Fetched:
    arn = cdk.Stack.of(scope).format_arn(
        service="s3", region="", account="", resource=bucket, resource_name=key
    )
    return Fetched(f"s3://{bucket}/{key}", arn, sha256)
