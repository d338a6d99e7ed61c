"""What a batch of a test lands: its files by their path in the landing zone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from polynya.formats.files.discovery import glob_pattern
from polynya.model.config.dataset import of_source
from polynya.model.config.task import resolved
from polynya.model.errors import ConfigError
from polynya.model.formats.registry import rules_of
from polynya.model.reading.task_test_loader import LoadedTest
from polynya.store.object_store import LocalObjectStore
from polynya.testing.messages import landed_messages
from polynya.testing.parquet_files import parquet_file

#: Parts of a glob, and what stands in their place in the name of a file; `{}` is its number.
_FILLED: Final = (
    (re.compile(r"\*\*/"), "{}/"),
    (re.compile(r"\*+"), "{}"),
    (re.compile(r"\?"), "0"),
    (re.compile(r"\[([^!\]/])[^\]/]*\]"), r"\1"),
)


def landing_files(test: LoadedTest, number: int, project: Path) -> Mapping[str, bytes]:
    """Return the files of the batch with this number (from 0), as they land.

    Raises ConfigError when a folder is empty, a value does not fit its column, or no name for a
    file can be made from the `path` of the dataset.
    """
    batch = test.test.given[number]
    root = test.task.landing.path
    if batch.folder is not None:
        store, prefix = LocalObjectStore(project), f"{batch.folder}/"
        found = {
            f"{root}/{info.path.removeprefix(prefix)}": store.get(info.path)
            for info in store.list(batch.folder)
        }
        if not found:
            raise _unusable(test, number, f"the folder {batch.folder} has no files")
        return found
    if rules_of(test.task.landing.format).events_in_tests == "messages":
        return landed_messages(test, number)
    return {f"{root}/{_name(test, number)}": _content(test, number)}


def _content(test: LoadedTest, number: int) -> bytes:
    batch = test.test.given[number]
    if batch.lines is not None:
        return batch.lines.encode()
    if rules_of(test.task.landing.format).events_in_tests == "parquet":
        declared = of_source(resolved(test.task, test.dataset)).events.columns
        try:
            return parquet_file(batch.events or (), declared)
        except ValueError as error:
            raise _unusable(test, number, str(error)) from error
    records = [json.dumps(event, ensure_ascii=False) for event in batch.events or ()]
    return "".join(f"{record}\n" for record in records).encode()


def _name(test: LoadedTest, number: int) -> str:
    batch, dataset = test.test.given[number], test.dataset
    if batch.file is not None:
        return batch.file
    if rules_of(test.task.landing.format).finds_tables:
        return _numbered("*.jsonl", number)
    glob = (dataset.initial_load if batch.load else dataset.path) or "*"
    name = _numbered(glob, number)
    if not glob_pattern(glob).fullmatch(name):
        raise _unusable(test, number, f"no file name could be made from the glob `{glob}`")
    return name


def _numbered(glob: str, number: int) -> str:
    name = glob.replace("{", "{{").replace("}", "}}")
    for pattern, filler in _FILLED:
        name = pattern.sub(filler, name)
    # Names sort as the batches do, also within one copy.
    return name.format(*[f"{number + 1:04d}"] * name.count("{}"))


def _unusable(test: LoadedTest, number: int, why: str) -> ConfigError:
    return ConfigError(
        "POLYNYA-TEST-002",
        f"the batch cannot land: {why}",
        where=test.where("given", number),
        state="the test was not run; the project's own tables are never touched",
        fix="name the `file` of the batch, or fix the values or the folder",
    )
