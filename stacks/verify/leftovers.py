"""What belongs to the throw-away stage: emptied before it is destroyed, listed after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from stacks.verify.throwaway import NAME

Client: TypeAlias = Callable[[str], Any]

PREFIX: Final = f"polynya-{NAME}"
_GONE: Final = {"DELETE_COMPLETE"}


def stacks_of(client: Client) -> list[str]:
    """Names of its stacks, in whatever state."""
    pages = client("cloudformation").get_paginator("describe_stacks").paginate()
    return [
        stack["StackName"]
        for page in pages
        for stack in page["Stacks"]
        if stack["StackName"].startswith(f"{PREFIX}-") and stack["StackStatus"] not in _GONE
    ]


def empty_buckets(client: Client) -> int:
    """Delete every version of every object in the buckets of its stacks; returns how many."""
    s3, deleted = client("s3"), 0
    # Access logs of the deletions arrive later: the bucket that receives them is the last.
    for bucket in sorted(_buckets(client), key=lambda name: "accesslogs" in name.lower()):
        logging = s3.get_bucket_logging(Bucket=bucket)
        if "LoggingEnabled" in logging:
            s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus={})
        for keys in _versions(s3, bucket):
            answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})
            deleted += len(keys) - len(answer.get("Errors", []))
    return deleted


def _buckets(client: Client) -> Iterator[str]:
    cloudformation = client("cloudformation")
    for stack in stacks_of(client):
        pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
        for page in pages:
            for resource in page["StackResourceSummaries"]:
                made = resource["ResourceStatus"] not in _GONE
                if resource["ResourceType"] == "AWS::S3::Bucket" and made:
                    yield resource["PhysicalResourceId"]


def _versions(s3: Any, bucket: str) -> Iterator[list[dict[str, str]]]:
    """Pages of what `delete_objects` takes: versions and markers of deletions."""
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        if found:
            yield [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in found]


def forget_logs(client: Client) -> int:
    """Delete the logs that functions without a log group of their stack have made for themselves.

    Those of the CDK's custom resources: no stack and no tag names them. Returns how many.
    """
    logs = client("logs")
    pages = logs.get_paginator("describe_log_groups").paginate(
        logGroupNamePrefix=f"/aws/lambda/{PREFIX}-"
    )
    names = [group["logGroupName"] for page in pages for group in page["logGroups"]]
    for name in names:
        logs.delete_log_group(logGroupName=name)
    return len(names)


def left_over(client: Client) -> tuple[str, ...]:
    """Whatever still has the tag of the stage, and its stacks; with the reason where it must stay.

    What AWS deletes with a delay, such as a terminated instance, is in neither list.
    """
    tagged = client("resourcegroupstaggingapi").get_paginator("get_resources")
    wanted = [{"Key": "polynya:stage", "Values": [NAME]}]
    arns = [
        each["ResourceARN"]
        for page in tagged.paginate(TagFilters=wanted)
        for each in page["ResourceTagMappingList"]
    ]
    tagged_lines = (said for arn in sorted(arns) if (said := _said(client, arn)))
    return (*stacks_of(client), *tagged_lines, *_roles(client))


def _roles(client: Client) -> Iterator[str]:
    """The role of the experiment, which no search by tags finds."""
    pages = client("iam").get_paginator("list_roles").paginate()
    for page in pages:
        yield from (role["Arn"] for role in page["Roles"] if role["RoleName"].startswith(PREFIX))


def _said(client: Client, arn: str) -> str | None:
    """A line for a resource; None if it is going by itself."""
    service, _, resource = arn.split(":", 2)[2].partition(":")
    if service == "kms" and "key/" in resource:
        key = client("kms").describe_key(KeyId=arn)["KeyMetadata"]
        if key["KeyState"] == "PendingDeletion":
            return f"{arn}: free of charge, deleted by AWS on {key['DeletionDate']:%Y-%m-%d}"
    if service == "ec2" and "instance/" in resource:
        identity = resource.rpartition("/")[2]
        answer = client("ec2").describe_instances(InstanceIds=[identity])["Reservations"]
        if all(i["State"]["Name"] == "terminated" for r in answer for i in r["Instances"]):
            return None
    return arn
