"""The kinds of task that a file of `tasks/` may hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from polynya.model.config.capture.connected import ConnectedCapture
from polynya.model.config.capture.landing import CaptureLanding
from polynya.model.config.streaming.landing import StreamingLanding
from polynya.model.config.streaming.transform import StreamingTransform
from polynya.model.config.task import StorageTask

#: A task of any kind, as an agent or a run has it work.
Task: TypeAlias = StorageTask | StreamingLanding | ConnectedCapture

#: A task as its file writes it. A transform is a storage task in other words, and a capture names
#: its connection.
Written: TypeAlias = StorageTask | StreamingLanding | StreamingTransform | CaptureLanding

#: The model of a task file by its `kind`; editors are offered all of them.
TASK_KINDS: Final[Mapping[str, type[Written]]] = {
    "storage": StorageTask,
    "landing": CaptureLanding,
    "streaming_landing": StreamingLanding,
    "streaming_transform": StreamingTransform,
}
