"""Lifecycle rules of a bucket that take away objects of tables, or make them unreadable.

A rule knows nothing of Iceberg: a table may need a file that was written long ago.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polynya.model.config.aws import AwsAccess
from polynya.store.aws.clients import AWS_ERRORS, client, code_of, explained, is_transient
from polynya.store.clock import Retry

#: Classes whose objects have to be restored before they can be read.
_ARCHIVES: Final = frozenset({"GLACIER", "DEEP_ARCHIVE"})


@dataclass(frozen=True, slots=True)
class HarmfulRule:
    """A rule by its ID and prefix; `does` says what it does, and when."""

    name: str
    prefix: str
    does: str

    def __str__(self) -> str:
        where = f"below `{self.prefix}`" if self.prefix else "in the whole bucket"
        return f"rule `{self.name}` {self.does} objects {where}"


def lifecycle_rules(access: AwsAccess, bucket: str, retry: Retry) -> list[Mapping[str, Any]]:
    """The lifecycle rules of a bucket, as S3 tells them. Raises DependencyError."""
    s3 = client("s3", access)
    try:
        answer = retry.run(
            lambda: s3.get_bucket_lifecycle_configuration(Bucket=bucket), is_transient
        )
    except AWS_ERRORS as error:
        if code_of(error) == "NoSuchLifecycleConfiguration":
            return []
        raise explained(
            error,
            action="read the lifecycle rules",
            resource=f"bucket {bucket}",
            grant=f"s3:GetLifecycleConfiguration on the bucket {bucket}",
        ) from error
    return list(answer["Rules"])


def harmful_rules(
    rules: Iterable[Mapping[str, Any]], folders: Sequence[str]
) -> Iterator[HarmfulRule]:
    """The enabled rules that expire or archive current objects below some folders of the bucket.

    Rules for objects with a tag are left out: the files of tables have none. Rules for former
    versions and for unfinished uploads do no harm.

    Args:
        rules: as `lifecycle_rules` returns them.
        folders: keys with a slash at the end; "" is the whole bucket.
    """
    for rule in rules:
        wanted = rule.get("Filter", {})
        both = wanted.get("And", wanted)
        if rule.get("Status") != "Enabled" or "Tag" in both or both.get("Tags"):
            continue
        prefix = str(both.get("Prefix", rule.get("Prefix", "")))
        if not any(prefix.startswith(one) or one.startswith(prefix) for one in folders):
            continue
        does = [*_expired(rule.get("Expiration", {})), *_archived(rule.get("Transitions", []))]
        if does:
            yield HarmfulRule(str(rule.get("ID", "")), prefix, " and ".join(does))


def _expired(expiration: Mapping[str, Any]) -> Iterator[str]:
    if when := _when(expiration):
        yield f"deletes {when}"


def _archived(transitions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for one in transitions:
        if one.get("StorageClass") in _ARCHIVES:
            yield f"moves to {one['StorageClass']} {_when(one)}"


def _when(action: Mapping[str, Any]) -> str:
    if "Days" in action:
        return f"after {action['Days']} days"
    return f"from {action['Date']:%Y-%m-%d} on" if "Date" in action else ""
