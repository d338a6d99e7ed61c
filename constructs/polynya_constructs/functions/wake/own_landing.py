"""Which objects of the landing bucket are for a cluster, as its leader wrote it.

Polynya's `cluster/control/own_landing.py` writes the document. Without one that can be read and
understood, every object is taken for the cluster's own: a node too many is better than data that
waits for the next object.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote_plus

VERSION = 1
"""The newest format of the document that is understood."""

_KEPT_SECONDS = 60.0
"""How long a document is taken for the newest one."""


@dataclass(frozen=True)
class OwnLanding:
    """The prefixes of the cluster's own objects; None: all objects are its own, and `why`."""

    prefixes: frozenset[str] | None
    why: str

    def has(self, key: str) -> bool:
        """Whether the object is for the cluster."""
        return self.prefixes is None or bool(self.starts(key))

    def starts(self, key: str) -> set[str]:
        """The prefixes that the key of an object begins with; its folder if none are known."""
        # S3 encodes the keys in some of its notifications.
        forms = {key, unquote_plus(key)}
        if self.prefixes is None:
            return {form[: form.rfind("/") + 1] for form in forms}
        return {form[:length] for form in forms for length in self._lengths} & self.prefixes

    @cached_property
    def _lengths(self) -> frozenset[int]:
        return frozenset(map(len, self.prefixes or ()))


def parsed(document: bytes, bucket: str) -> OwnLanding:
    """What a document says of the objects of a bucket."""
    try:
        known = json.loads(document)
        version, of, prefixes = known["v"], known["bucket"], known["prefixes"]
        if version > VERSION:
            return OwnLanding(None, f"the document has the newer format {version}")
        if of != bucket:
            return OwnLanding(None, f"the document is about another bucket, {of}")
        return OwnLanding(frozenset(map(str, prefixes)), "prefixes of its tasks")
    except (ValueError, TypeError, LookupError) as error:
        return OwnLanding(None, f"the document is damaged: {error!r}")


class OwnLandingReader:
    """The document in a bucket, read at most once a minute.

    Args:
        place: bucket and key of the document.
        bucket: the one in which changes land.
        now: in seconds; only differences count.
    """

    def __init__(
        self,
        place: tuple[str, str],
        bucket: str,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._place, self._bucket, self._now = place, bucket, now
        self._known: tuple[float, OwnLanding] | None = None

    def __call__(self, s3: Callable[[], Any]) -> OwnLanding:
        """What is known now; `s3` makes the client, if it is needed."""
        now = self._now()
        if self._known is None or now - self._known[0] >= _KEPT_SECONDS:
            self._known = now, self._read(s3)
        return self._known[1]

    def _read(self, s3: Callable[[], Any]) -> OwnLanding:
        bucket, key = self._place
        try:
            return parsed(s3().get_object(Bucket=bucket, Key=key)["Body"].read(), self._bucket)
        except Exception as error:  # noqa: BLE001 - whatever it is, the cluster has to wake
            return OwnLanding(None, f"the document cannot be read: {error}")
