"""The Lambda function that tells the nodes of a cluster which folders objects landed in.

It runs for batches of the events of objects that land, and puts one record on the workload stream
for each batch: the beginnings of the keys, not the keys, so that 100,000 objects are a few hundred
bytes. Nodes list these folders at their next turn (`cluster/gossip/records.py` of Polynya reads the
record). What landed for other clusters does not count (`own_landing`).

A hint that is lost costs some seconds, because nodes list their folders anyway. So nothing is tried
again: events that this function did not take leave the queue after a minute.
"""

from __future__ import annotations

import itertools
import json
import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

import boto3
from botocore.config import Config

from .handler import events_of
from .own_landing import OwnLanding, OwnLandingReader

VERSION = 1
"""Of the record."""

_MOST_STARTS = 64
_MOST_BYTES = 8_000
"""More than these say: anywhere. A node takes records of 10 KiB with 64 beginnings of keys."""

_EVERYWHERE = [""]

_IN_TIME = Config(connect_timeout=2, read_timeout=4, retries={"total_max_attempts": 2})

_INCARNATION = uuid.uuid4().hex
_NUMBERS = itertools.count(1)
"""A sender's name and its numbers: by them nodes tell a record that comes twice."""


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Entry of the Lambda function."""
    own = _own_landing()(_s3)
    starts = starts_of(events_of(event), os.environ["LANDING_BUCKET"], own)
    return {"action": tell(starts, os.environ["GROUP_NAME"], _kinesis, datetime.now(UTC))}


# Both live as long as the process, for making a client takes long.
@cache
def _s3() -> Any:
    return boto3.client("s3", config=_IN_TIME)


@cache
def _kinesis() -> Any:
    return boto3.client("kinesis", config=_IN_TIME)


@cache
def _own_landing() -> OwnLandingReader:
    """What the process remembers of the document."""
    place = os.environ["CONFIGURATION_BUCKET"], os.environ["OWN_LANDING_KEY"]
    return OwnLandingReader(place, os.environ["LANDING_BUCKET"])


def starts_of(events: Iterable[Mapping[str, Any]], landing: str, own: OwnLanding) -> set[str]:
    """How the keys of the cluster's own objects begin; `landing` is the bucket of data."""
    starts = set()
    for event in events:
        detail = event.get("detail") or {}
        key = (detail.get("object") or {}).get("key")
        if key is not None and (detail.get("bucket") or {}).get("name") == landing:
            starts.update(own.starts(key))
    return starts


def tell(starts: Iterable[str], cluster: str, kinesis: Callable[[], Any], now: datetime) -> str:
    """Put one hint on the stream, if there is something to say; returns what was done and why.

    Raises:
        botocore.exceptions.ClientError: AWS refused; nothing was told.
    """
    named = sorted(starts)
    if not named:
        return "none: nothing is for this cluster"
    kinesis().put_record(
        StreamARN=os.environ["STREAM_ARN"],
        PartitionKey=_INCARNATION,
        Data=record(named, cluster, next(_NUMBERS), now),
    )
    return f"told of {len(named)} beginnings of keys"


def record(starts: list[str], cluster: str, number: int, now: datetime) -> bytes:
    """A hint as nodes read it."""
    fields = {
        "v": VERSION,
        "type": "landed",
        "cluster": cluster,
        "node": "arrivals",
        "incarnation": _INCARNATION,
        "seq": number,
        "at": now.isoformat(timespec="milliseconds"),
        "starts": starts,
    }
    written = json.dumps(fields, separators=(",", ":")).encode()
    if len(starts) <= _MOST_STARTS and len(written) <= _MOST_BYTES:
        return written
    return record(_EVERYWHERE, cluster, number, now)
