"""A streaming transform and the landing that it reads, as their files would say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.config.task import StorageTask
from polynya.model.config.transform import StreamingTransform
from polynya.model.project_transforms import as_storage

HEAD: Final = {"apiVersion": "polynya/v1"}
KAFKA: Final = {"kafka": {"bootstrap_servers": "b:1", "topics": ["clicks"]}}


def landing_of(schema: str, source: Mapping[str, Any], **settings: Any) -> StreamingLanding:
    """The landing `clicks`, in a folder that has the name of the schema."""
    return StreamingLanding.model_validate(
        {
            **HEAD, "kind": "streaming_landing", "name": "clicks", "source": dict(source),
            "folder": schema, **settings,
        }
    )  # fmt: skip


def storage_of(schema: str, landing: StreamingLanding, settings: Mapping[str, Any]) -> StorageTask:
    """The storage task that the transform `facts` of it is."""
    transform = StreamingTransform.model_validate(
        {
            **HEAD, "kind": "streaming_transform", "name": "facts", "from": "clicks",
            "schema": schema, **settings,
        }
    )  # fmt: skip
    return as_storage(transform, landing)
