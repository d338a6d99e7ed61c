"""How far files were read, and its JSON, of which most is made once."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from polynya.formats import files as read_files
from polynya.formats.batch import FileProgress
from polynya.formats.files import FilesProgress, read

paths = st.sampled_from([f"ä/{number}" for number in range(12)])
progress = st.builds(
    FileProgress,
    st.integers(0, 9),
    st.integers(0, 9),
    complete=st.booleans(),
    stamp=st.integers(0, (1 << 24) - 1),
)
Steps = list[tuple[dict[str, FileProgress], frozenset[str] | None]]
#: What each step reads, and which files are there then.
steps: st.SearchStrategy[Steps] = st.lists(
    st.tuples(
        st.dictionaries(paths, progress, max_size=5), st.none() | st.frozensets(paths, max_size=12)
    ),
    max_size=12,
)


@given(steps, st.integers(1, 5))
def test_its_json_is_that_of_all_files_whatever_came_and_went(steps: Steps, many: int) -> None:
    before, read_files._JSON_CHUNK_FILES = read_files._JSON_CHUNK_FILES, many  # type: ignore[misc]
    try:
        files, wanted = FilesProgress(), dict[str, FileProgress]()
        for now, live in steps:
            files = files.after(now, live)
            wanted = {
                path: done
                for path, done in {**wanted, **now}.items()
                if live is None or path in live or path in now
            }
            assert files == wanted
            written = json.loads(files.to_json())
            again = read(written, json.loads(json.dumps(files.begun())))
            assert again == wanted
            assert [again[path].stamp for path in wanted] == [one.stamp for one in wanted.values()]
            # As versions before stamps read it.
            assert {path: bool(done) for path, (_, _, done) in written.items()} == {
                path: one.complete for path, one in wanted.items()
            }
    finally:
        read_files._JSON_CHUNK_FILES = before  # type: ignore[misc]


def test_of_thousands_of_files_few_are_written_anew() -> None:
    files = FilesProgress({f"{n}": FileProgress(9, 9, complete=True) for n in range(3000)})

    files = files.after({"new": FileProgress(9, 1, complete=False)}, None)

    assert files._count == 3000
    assert files.to_json().endswith('"2999": [9, 9, 1], "new": [9, 1, 0]}')
