"""The kinds of task, by the `kind` of their files in `tasks/`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from polynya.model.config.capture import CaptureLanding
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.derived import TransformTask
from polynya.model.config.mart import DataMart
from polynya.model.config.mirror import ConnectedMirror, MirrorTask
from polynya.model.config.registered import RegisteredTask
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.config.task import StorageTask
from polynya.model.config.template import TaskTemplate, TemplateInstance
from polynya.model.config.transform import StreamingTransform

#: A task of any kind, as an agent or a run works on it.
Task: TypeAlias = StorageTask | StreamingLanding | ConnectedCapture | ConnectedMirror

#: A task as its file has it: transforms become storage tasks, and captures and mirrors name their
#: connection.
Written: TypeAlias = (
    StorageTask
    | StreamingLanding
    | StreamingTransform
    | TransformTask
    | DataMart
    | CaptureLanding
    | MirrorTask
    | RegisteredTask
)

#: The model of a task file by its `kind`, as soon as instances are what their templates make them.
TASK_KINDS: Final[Mapping[str, type[Written]]] = {
    "storage": StorageTask,
    "landing": CaptureLanding,
    "streaming_landing": StreamingLanding,
    "streaming_transform": StreamingTransform,
    "transform": TransformTask,
    "data_mart": DataMart,
    "mirror": MirrorTask,
    "registered": RegisteredTask,
}

#: The models of all files in `tasks/` by their `kind`; editors are offered them.
FILE_KINDS: Final[Mapping[str, type[Written | TaskTemplate | TemplateInstance]]] = {
    **TASK_KINDS,
    "template": TaskTemplate,
    "instance": TemplateInstance,
}
