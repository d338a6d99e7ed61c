"""`python -m stacks.publish`: put what the nodes of a stage fetch where its templates look for it.

Before each deployment, from a workstation or a build of the pipeline. The archive is named by its
content, so what is there already is left alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import boto3
from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import BotoCoreError, ClientError

from polynya.model.error_catalogue.cluster import NODE_PACKAGE_NOT_BUILT
from polynya.model.errors import ConfigError, DependencyError
from polynya.store.aws.clients import explained
from polynya_constructs.packaging.job_environment import job_environment
from polynya_constructs.packaging.package import Archive, Dependencies, write_code
from stacks.package import PACKAGES
from stacks.region import stage_region
from stacks.settings.cluster_checks import PROJECT
from stacks.settings.loader import Deployment, load_deployment
from stacks.settings.stage import StageConfig

_QUALIFIER: Final = "hnb659fds"  # of `cdk bootstrap`, unless it is told another one
_SESSION: Final = "polynya-publish"


def main(arguments: Sequence[str] | None = None) -> int:
    """Publish the archives of one stage, or of all that the pipeline promotes."""
    parser = argparse.ArgumentParser(prog="python -m stacks.publish", description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--stage", help="of this stage")
    which.add_argument("--promoted", action="store_true", help="of each stage of the pipeline")
    options = parser.parse_args(arguments)
    try:
        deployment = load_deployment(PROJECT / "config")
        for stage in _chosen(deployment, options.stage):
            for archive in archives(stage, PROJECT, PACKAGES):
                print(publish(boto3.Session(), stage, archive))
    except (ConfigError, DependencyError) as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    return 0


def archives(stage: StageConfig, project: Path, folder: Path) -> list[Archive]:
    """The archives that the nodes, the network agent and the jobs of a stage fetch.

    Raises:
        DependencyError: one is not built (POLYNYA-STG-004).
    """
    found = []
    for architecture in stage.package_architectures:
        archive = Dependencies.of(project, folder, architecture).built()
        if archive is None:
            raise NODE_PACKAGE_NOT_BUILT(where=str(folder), architecture=architecture)
        found.append(archive)
    for architecture in stage.job_architectures:
        dependencies = Dependencies.of(project, folder, architecture)
        archive = job_environment(folder, dependencies, write_code(project, folder)).built()
        if archive is None:
            raise NODE_PACKAGE_NOT_BUILT(where=str(folder), architecture=architecture)
        found.append(archive)
    return found


def publish(session: Any, stage: StageConfig, archive: Archive) -> str:
    """Upload an archive unless it is there; returns what was done.

    Raises:
        ConfigError: no region is known.
        DependencyError: AWS refuses, or is not reached.
    """
    key, bucket = archive.key, "the bucket of assets"
    try:
        region = stage_region(stage)
        sts = session.client("sts", region_name=region)
        account = stage.account or sts.get_caller_identity()["Account"]
        bucket = f"cdk-{_QUALIFIER}-assets-{account}-{region}"
        s3 = _publisher(session, account, region).client("s3", region_name=region)
        # Somebody else's bucket of that name is none.
        owned = {"ExpectedBucketOwner": account}
        if _size(s3, bucket, key, owned) == archive.path.stat().st_size:
            return f"s3://{bucket}/{key} is there already"
        s3.upload_file(str(archive.path), bucket, key, ExtraArgs=owned)
    except (BotoCoreError, ClientError, S3UploadFailedError) as error:
        # What went wrong with an upload is what it was raised for.
        said = error.__context__ if isinstance(error, S3UploadFailedError) else error
        raise explained(
            said if isinstance(said, Exception) else error,
            action="publish the package of the nodes",
            resource=f"s3://{bucket}/{key}",
            grant="sts:AssumeRole on the file-publishing role of `cdk bootstrap`",
        ) from error
    return f"s3://{bucket}/{key} was uploaded"


def published(session: Any, account: str, region: str, bucket: str, key: str) -> bool:
    """Return whether an object is in a bucket of assets, asked with the publishing role.

    Raises:
        DependencyError: AWS refuses, or is not reached.
    """
    try:
        s3 = _publisher(session, account, region).client("s3", region_name=region)
        return _size(s3, bucket, key, {"ExpectedBucketOwner": account}) is not None
    except (BotoCoreError, ClientError) as error:
        raise explained(
            error,
            action="look for the package of the nodes",
            resource=f"s3://{bucket}/{key}",
            grant="sts:AssumeRole on the file-publishing role of `cdk bootstrap`",
        ) from error


def _chosen(deployment: Deployment, name: str | None) -> Iterable[StageConfig]:
    if name is not None:
        return [stage for stage in deployment.stages if stage.name == name]
    promotions = deployment.pipeline.promotions if deployment.pipeline else ()
    return [deployment.stage(promotion.stage) for promotion in promotions]


def _publisher(session: Any, account: str, region: str) -> Any:
    """A session of the role that `cdk bootstrap` made for publishing."""
    partition = session.get_partition_for_region(region)
    name = f"cdk-{_QUALIFIER}-file-publishing-role-{account}-{region}"
    answer = session.client("sts", region_name=region).assume_role(
        RoleArn=f"arn:{partition}:iam::{account}:role/{name}", RoleSessionName=_SESSION
    )
    credentials = answer["Credentials"]
    return boto3.Session(
        aws_access_key_id=credentials["AccessKeyId"],
        aws_secret_access_key=credentials["SecretAccessKey"],
        aws_session_token=credentials["SessionToken"],
        region_name=region,
    )


def _size(s3: Any, bucket: str, key: str, owned: dict[str, str]) -> int | None:
    try:
        return int(s3.head_object(Bucket=bucket, Key=key, **owned)["ContentLength"])
    except ClientError as error:
        if error.response["Error"]["Code"] in {"404", "NoSuchKey", "NotFound"}:
            return None
        raise


if __name__ == "__main__":
    sys.exit(main())
