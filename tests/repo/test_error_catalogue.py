"""Every error stands once, in the catalogue, and the code raises it by its entry."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import OperationError
from tests.repo.error_catalogue import (
    PARTS,
    Entry,
    entries,
    sources,
    uses,
    values_of,
    written_codes,
    wrong_keywords,
)

#: Prints its error at the deployment, where the runtime is not installed.
WITHOUT_RUNTIME = {"constructs/polynya_constructs/runtime_package.py"}
#: Words of the prose that these texts had before; a native engineer uses others.
OLD_PROSE = re.compile(
    r"\b(?<![Tt]here )is no\b(?! longer)|\b(?:anew|whom|goes on|of which|does away)\b"
    r"|(?:^|[.:;,] )who\b"
)


def bad_texts(name: str, entry: Entry) -> list[str]:
    """What is wrong with the texts of an entry."""
    found = [f"{name}: a value is called {part}" for part in PARTS & values_of(entry, set())]
    for part in ("title", "message", "state", "fix", "page"):
        text = getattr(entry, part) or ""
        if (match := OLD_PROSE.search(text)) is not None:
            found.append(f"{name}: `{match[0]}` in its {part}")
        if part != "page" and text.endswith("."):
            found.append(f"{name}: a period at the end of its {part}")
        if part == "page" and not text.endswith((".", "`")):
            found.append(f"{name}: no period at the end of its page")
        if part == "message" and text.startswith(("A ", "An ", "No ", "The ", "This ")):
            found.append(f"{name}: its message begins with a capital letter")
    return found


def test_each_call_of_an_entry_gives_the_values_of_its_templates():
    wrong = [
        f"{path}:{use.line}: {use.name} {why}"
        for path, text in sources().items()
        for use in uses(text)
        if (why := wrong_keywords(use)) is not None
    ]

    assert wrong == []


def test_an_error_code_stands_in_the_catalogue_only():
    written = {str(path) for path, text in sources().items() if written_codes(text)}

    assert written == WITHOUT_RUNTIME


def repeated(named: Iterable[tuple[str, Entry]]) -> list[str]:
    """Names of entries and codes that stand more than once."""
    counts = Counter(text for name, entry in named for text in (name, entry.code))
    return sorted(text for text, count in counts.items() if count > 1)


def unused(named: Iterable[tuple[str, Entry]], texts: Iterable[str]) -> list[str]:
    """Codes of entries that no module with one of the texts calls or names."""
    used = {
        code
        for text in texts
        for code in (*(use.entry.code for use in uses(text)), *written_codes(text))
    }
    return sorted({entry.code for _, entry in named} - used)


def test_names_and_codes_of_errors_are_unique():
    assert repeated(entries()) == []


def test_every_error_can_be_raised():
    assert unused(entries(), sources().values()) == []


def test_texts_of_errors_follow_the_style():
    assert [fault for name, entry in entries() for fault in bad_texts(name, entry)] == []


_PLANTED = ErrorEntry(
    OperationError,
    "POLYNYA-XYZ-001",
    title="there is no title.",
    message="The {table} is no table.",
    state="{table} goes on as {state}",
    fix="try {table} again",
    page="The page",
)


def _use(call: str) -> str | None:
    """What is wrong with a call of an entry with `path`, `other` and `place` in its message."""
    text = f"from polynya.model.error_catalogue.expressions import TWO_ARRAYS_MAKE_ROWS\n{call}"
    return next(wrong_keywords(use) for use in uses(text))


def test_wrong_calls_are_seen():
    values = "path=1, other=2, place=3"

    assert _use(f"TWO_ARRAYS_MAKE_ROWS({values}, where='x', why='y', fix='z')") is None
    assert _use("TWO_ARRAYS_MAKE_ROWS('two arrays')") is None
    assert _use(f"TWO_ARRAYS_MAKE_ROWS.raising(Other)({values})") is None
    assert _use("TWO_ARRAYS_MAKE_ROWS(path=1, other=2)") == "lacks place"
    assert _use("TWO_ARRAYS_MAKE_ROWS.raising(Other)(path=1)") == "lacks other, place"
    assert _use(f"TWO_ARRAYS_MAKE_ROWS({values}, table=4)") == "has no use for table"
    assert _use("TWO_ARRAYS_MAKE_ROWS(**values)") is not None


def test_written_codes_are_seen():
    text = '''
def refuse():
    """Raise POLYNYA-CFG-001."""
    raise ConfigError("POLYNYA-CFG-002", f"see POLYNYA-CFG-003 of {name}")
'''

    assert written_codes(text) == ["POLYNYA-CFG-002", "POLYNYA-CFG-003"]


def test_bad_texts_are_seen():
    assert bad_texts("PLANTED", _PLANTED) == [
        "PLANTED: a value is called state",
        "PLANTED: a period at the end of its title",
        "PLANTED: `is no` in its message",
        "PLANTED: a period at the end of its message",
        "PLANTED: its message begins with a capital letter",
        "PLANTED: `goes on` in its state",
        "PLANTED: no period at the end of its page",
    ]
    assert values_of(_PLANTED, {"message", "state"}) == {"table"}


def test_repeated_and_unused_errors_are_seen():
    named = [("PLANTED", _PLANTED), ("OTHER", _PLANTED)]

    assert repeated([("PLANTED", _PLANTED)]) == []
    assert repeated(named) == ["POLYNYA-XYZ-001"]
    assert repeated(named[:1] * 2) == ["PLANTED", "POLYNYA-XYZ-001"]
    assert unused(named, ["raise TABLE_LOST(where=x)"]) == ["POLYNYA-XYZ-001"]
    assert unused(named, ["CODE = 'POLYNYA-XYZ-001'"]) == []
