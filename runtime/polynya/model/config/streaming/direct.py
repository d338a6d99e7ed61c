"""A task that reads its stream itself: the table holds the position, and nothing is landed."""

from __future__ import annotations

from pydantic import Field

from polynya.model.config.fields import Name
from polynya.model.config.streaming.landing import StreamingLanding
from polynya.model.config.task import StorageTask


class DirectTask(StorageTask):
    """A storage task over a landing with `direct: true`.

    No file says this: it is made of a streaming transform and its landing.
    """

    reads: StreamingLanding = Field(description="Source of the stream.")
    reads_table: Name = Field(description="The landed table that its streams would have.")

    def landed(self) -> StorageTask:
        """The same over landed batches, for those who have messages and no source."""
        said = {name for name in self.model_fields_set if name in StorageTask.model_fields}
        return StorageTask(**{name: getattr(self, name) for name in said})


def reading(task: StorageTask, landing: StreamingLanding, table: str) -> DirectTask:
    """A task that reads itself what a landing would have in a landed table."""
    # As a file would say it: what is set tells what the project's defaults may say.
    said = {name: getattr(task, name) for name in task.model_fields_set}
    return DirectTask(**said, reads=landing, reads_table=table)
