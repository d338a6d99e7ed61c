"""A stream that never lands shows nothing before it is read, and a preview says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.engine.preview.project import previews
from polynya.model.errors import OperationError
from polynya.model.reading.loader import load_project
from tests.model.reading.test_directs import CLICKS, FACTS
from tests.projects import write_project


def test_a_table_that_reads_its_stream_is_no_preview_but_an_error(tmp_path: Path) -> None:
    project = load_project(write_project(tmp_path, clicks=CLICKS, facts=FACTS))

    [seen] = previews(project, lambda _, __: True, lambda: pytest.fail("asks Spark"), limit=1)

    assert isinstance(seen, OperationError)
    assert seen.code == "POLYNYA-STR-070"
