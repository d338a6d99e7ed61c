"""What a landing says of places outside of the target, made absolute."""

from __future__ import annotations

from pathlib import Path

from polynya.model.config.streaming.landing import StreamingLanding
from polynya.model.contract.location import parse_location
from polynya.model.documents.problems import Problem
from polynya.model.errors import ConfigError


def with_places(task: StreamingLanding, directory: Path) -> tuple[StreamingLanding, list[Problem]]:
    """The task with the absolute place of its files, and what is wrong with that.

    A folder is relative to `directory`.
    """
    files = task.source.files
    if files is None:
        return task, []
    path = ("source", "files", "url")
    try:
        place = parse_location(files.url, directory, ".".join(path))
    except ConfigError as error:
        return task, [Problem(path, error.code, error.message, error.fix)]
    placed = files.model_copy(update={"url": str(place)})
    source = task.source.model_copy(update={"files": placed})
    return task.model_copy(update={"source": source}), []
