"""The source of a task, by the key that its file writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from polynya.lake.spark.api import SparkSession
from polynya.model.config.aws import AwsAccess, S3Store
from polynya.model.config.http_source import ConnectedHttpSource
from polynya.model.config.stream_landing import KinesisSource, StreamingLanding
from polynya.model.names import parse_location
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore
from polynya.store.places import source_at
from polynya.store.vault import vault
from polynya.streams.files.source import Files
from polynya.streams.kafka.source import Kafka
from polynya.streams.kinesis.source import Kinesis
from polynya.streams.source import MessageSource


def source_of(
    spark: SparkSession,
    task: StreamingLanding,
    access: AwsAccess,
    clock: Clock,
    landing: ObjectStore | None = None,
) -> MessageSource:
    """What a landing reads. `access` is how the target reaches AWS.

    `landing` is the landing zone, which only a REST API needs: its resources may depend on landed
    ones.
    """
    source = task.source
    if isinstance(source.http, ConnectedHttpSource):
        assert landing is not None, "an API is never read without landing"
        # Start-up time: the HTTP client.
        from polynya.streams.rest.api import open_api
        from polynya.streams.rest.source import ApiSource

        api = open_api(source.http.api, vault(), clock)
        return ApiSource(api, clock, task, source.http, landing)
    if source.files is not None:
        # The loader has made it absolute.
        place = parse_location(source.files.url, Path.cwd(), f"task {task.name}")
        store = source_at(place, store_access(source.files.store, access))
        return Files(store, clock, task, source.files)
    if source.kinesis is not None:
        return _kinesis(task, source.kinesis, access, clock)
    assert source.kafka is not None, "a landing has exactly one source"
    return Kafka(spark, task, source.kafka)


def store_access(store: S3Store | None, access: AwsAccess) -> AwsAccess:
    """How the bucket of a source is reached; `access` is how the target reaches its own.

    Raises:
        DependencyError: its key cannot be read (POLYNYA-STR-090).
    """
    if store is None:
        return access
    own = AwsAccess(region=store.region or access.region, endpoint=store.endpoint)
    if store.access_key_id is None or store.secret_access_key is None:
        return own
    return replace(
        own,
        access_key_id=vault().open(store.access_key_id).text,
        secret_access_key=vault().open(store.secret_access_key.get_secret_value()).text,
    )


def _kinesis(
    task: StreamingLanding, source: KinesisSource, access: AwsAccess, clock: Clock
) -> Kinesis:
    # Start-up time: the AWS SDK takes as long as the rest of a command on local folders.
    from polynya.store.aws.kinesis import KinesisShards

    # The endpoint of a target is that of its buckets.
    own = replace(access, region=source.region or access.region, endpoint=source.endpoint)
    return Kinesis(KinesisShards(own), clock, task, source)
