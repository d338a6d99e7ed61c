"""Files of others are not read again for a landed table: nobody knows which they were."""

from __future__ import annotations

import pytest

from polynya.model.config.stream_landing import FilesSource, StreamingLanding
from polynya.model.errors import OperationError
from polynya.streams.files.source import Files
from polynya.testing.fakes import FakeClock, MemorySourceStore


def test_files_are_refused_by_name() -> None:
    files = FilesSource.model_validate({"url": "in", "pattern": "<yyyy>/part-*.json"})
    task = StreamingLanding.model_validate(
        {
            "apiVersion": "polynya/v1", "kind": "streaming_landing", "name": "exports",
            "source": {"files": files},
        }
    )  # fmt: skip
    source = Files(MemorySourceStore(), FakeClock(), task, files)

    with pytest.raises(OperationError) as refused:
        source.again("exports", {}, {})

    assert refused.value.code == "POLYNYA-STR-071"
    assert "may have been added, changed or removed" in str(refused.value.why)
