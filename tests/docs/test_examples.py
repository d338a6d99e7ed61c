"""Every example of the pages: configuration is loaded, sessions are run and print what they show.

`POLYNYA_TEST_WRITE=1` writes what was printed into the pages, for a person to look at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from polynya.lake.spark.api import SparkSession
from polynya.model.loader import LoadedProject
from tests.docs.configuration import wrong
from tests.docs.pages import PAGES, ROOT, blocks, neither_run_nor_explained, with_blocks
from tests.docs.sessions import Shell, difference, run
from tests.lab.commands import fresh_session, use_everywhere

#: Pages whose sessions take more than half of the time of all: with `make test-slow`.
SLOW = (
    "capture.md", "concepts.md", "extracts.md", "landing-formats.md", "operations.md",
    "other-engines.md", "read-duckdb.md", "read-python.md", "read-spark.md", "read-trino.md",
    "rebuild.md", "registered-data.md", "reload.md", "testing.md", "marts.md", "schema-changes.md",
    "serve-catalog.md", "server.md", "testing-transforms.md", "transforms.md",
)  # fmt: skip
#: One fault in each block.
FAULTY = """\
```yaml
# tasks/users.yml
apiVersion: polynya/v1
kind: storage
name: users
schema: shop
landing: {path: users, format: json}
datasets: [{name: users, kyes: [id], sequence_by: [at]}]
```

```yaml
columns: {at: timestmp}
```

```console
$ echo $?
1
$ polynya validate
valid: project mall, …
```

```sql
SELECT 1
```

```console
polynya validate
```

<!-- not run: this is not above the block -->
Text.

```text
```
"""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def with_sessions() -> Iterator[Any]:
    """Pages that have something to run."""
    for page in PAGES:
        if any(one.language == "console" and not one.excuse for one in blocks(page.read_text())):
            marks = [pytest.mark.slow] if page.name in SLOW else []
            yield pytest.param(page, id=name(page), marks=marks)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_configuration_is_loaded(page: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")

    assert neither_run_nor_explained(text) == []
    assert wrong(list(blocks(text)), tmp_path) == []


@pytest.fixture
def session(spark: SparkSession) -> Iterator[Callable[[LoadedProject], Any]]:
    """Makes sessions, one for each command."""
    yield lambda project: fresh_session(spark, project)
    use_everywhere(spark)


@pytest.mark.parametrize("page", list(with_sessions()))
def test_sessions_print_what_the_page_shows(
    session: Callable[[LoadedProject], Any], page: Path, tmp_path: Path
) -> None:
    text = page.read_text("utf-8")
    shell = Shell(tmp_path, session)

    found = [(block, now) for block, now in run(blocks(text), shell) if now != block.text]

    if "POLYNYA_TEST_WRITE" in os.environ:
        page.write_text(with_blocks(text, found), encoding="utf-8")
    assert not found, "\n".join(
        f"line {block.line}\n{difference(block.text, now)}" for block, now in found
    )


def test_planted_faults_are_found(tmp_path: Path) -> None:
    """Settings that no loader takes, other output, another exit code, blocks that nothing runs."""
    unknown, no_type = wrong(list(blocks(FAULTY)), tmp_path / "wrong")
    page = FAULTY.replace("kyes", "keys")
    (session, now), _ = run(blocks(page), Shell(tmp_path, lambda _: None))

    assert "line 1: " in unknown
    assert "unknown key `kyes`" in unknown
    assert "line 11: " in no_type
    assert "+0" in difference(session.text, now)
    assert "-valid: project mall" in difference(session.text, now)
    assert "valid: project shop, target local, 1 task" in with_blocks(page, [(session, now)])
    assert neither_run_nor_explained(FAULTY) == [
        "line 22: ```sql",
        "line 26: ```console",
        "line 33: ```text",
    ]
