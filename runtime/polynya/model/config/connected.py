"""A capture together with the connection that it names."""

from __future__ import annotations

from pydantic import Field

from polynya.model.config.capture import CaptureLanding
from polynya.model.config.connection import Connection


class ConnectedCapture(CaptureLanding):
    """A capture as a run has it."""

    database: Connection = Field(description="The connection with the overrides of the target.")


def connected(task: CaptureLanding, database: Connection) -> ConnectedCapture:
    """The capture with its connection."""
    # As a file would say it: what is set tells what was written.
    said = {name: getattr(task, name) for name in task.model_fields_set}
    return ConnectedCapture(**said, database=database)
