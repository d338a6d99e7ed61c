"""The store of a coordination place."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from polynya.model.config.aws import AwsAccess
from polynya.model.contract.location import parse_location
from polynya.store.object_store import ObjectStore
from polynya.store.places import store_at
from polynya.store.retry import Retry

#: A turn that the store holds up for longer is worth less than the next one, in seconds.
_RETRY_SECONDS: Final = 4.0


def coordination_store(place: str, access: AwsAccess) -> ObjectStore:
    """A folder, which is made if need be, or a place in a bucket.

    Raises:
        ConfigError: no such place can be (POLYNYA-CFG-009, 011, 018).
    """
    where = parse_location(place, Path.cwd(), "--coordination")
    if isinstance(where, Path):
        return store_at(where, access)
    # Start-up time: the AWS SDK takes as long as the rest of a command on local folders.
    from polynya.store.aws.s3 import S3ObjectStore

    return S3ObjectStore(where, access, retry=Retry(deadline=_RETRY_SECONDS))
