"""The object store of a place that a target names."""

from __future__ import annotations

from pathlib import Path

from polynya.model.config.aws import AwsAccess
from polynya.model.contract.location import Location
from polynya.store.object_store import LocalObjectStore, ObjectStore


def store_at(place: Location, access: AwsAccess) -> ObjectStore:
    """A local folder, which is made if need be, or a place in a bucket."""
    if isinstance(place, Path):
        place.mkdir(parents=True, exist_ok=True)
        return LocalObjectStore(place)
    # Start-up time: the AWS SDK takes as long as the rest of a command on local folders.
    from polynya.store.aws.s3 import S3ObjectStore

    return S3ObjectStore(place, access)
