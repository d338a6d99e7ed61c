"""A record stream in Amazon Kinesis."""

from __future__ import annotations

from typing import Any

from polynya.model.config.aws import AwsAccess
from polynya.store.aws.clients import AWS_ERRORS, client, explained, is_transient
from polynya.store.retry import Retry


class KinesisStream:
    """A Kinesis data stream, by name or ARN. Usable from many threads."""

    def __init__(self, name: str, access: AwsAccess, *, retry: Retry | None = None) -> None:
        self._name = name
        self._named = {"StreamARN" if name.startswith("arn:") else "StreamName": name}
        self._retry = retry or Retry(deadline=5.0)
        self._kinesis: Any = client("kinesis", access)

    def put(self, key: str, data: bytes) -> None:
        """Add a record of at most 1 MiB."""
        try:
            self._retry.run(
                lambda: self._kinesis.put_record(**self._named, PartitionKey=key, Data=data),
                is_transient,
            )
        except AWS_ERRORS as error:
            raise explained(
                error,
                action="put the record",
                resource=f"stream {self._name}",
                grant=f"kinesis:PutRecord on the stream {self._name}",
            ) from error
