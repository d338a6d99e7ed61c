"""Citations of the contract: "semantics section 4, rule 1" in code, tests and pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BETWEEN = r"[\s#*>/\"]+"  # a citation may go on in the next line of a comment or a string
_CITED = re.compile(
    rf"\bsections?{_BETWEEN}(?P<list>\d+(?:(?:,|{_BETWEEN}(?:and|to|or)|-){_BETWEEN}?\d+)*)"
    rf"(?:,?{_BETWEEN}(?:rule{_BETWEEN}(?P<rule>\d+)|\\?\"(?P<term>[A-Z][\w ]+)\\?\"))?",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^## (\d+)\. .+$", re.MULTILINE)


@dataclass(frozen=True)
class Citation:
    """Sections that a text names; `rule` is the number of a rule, `term` a name in bold."""

    line: int
    sections: tuple[int, ...]
    rule: int | None = None
    term: str | None = None


def citations(text: str) -> Iterator[Citation]:
    """Every place of a text that names sections by their numbers."""
    for found in _CITED.finditer(text):
        yield Citation(
            line=text.count("\n", 0, found.start()) + 1,
            sections=tuple(_numbers(found["list"])),
            rule=int(found["rule"]) if found["rule"] else None,
            term=found["term"],
        )


def sections(page: str) -> dict[int, str]:
    """The text of each numbered section of a page."""
    _, *parts = _HEADING.split(page)
    return dict(zip(map(int, parts[::2]), parts[1::2], strict=True))


def missing(text: str, page: str) -> list[str]:
    """Citations of a text that the page does not answer, each with its line."""
    known = sections(page)
    found = []
    for one in citations(text):
        named = [known.get(number, "") for number in one.sections]
        if not all(named):
            found.append(f"line {one.line}: no section {one.sections}")
        elif one.rule is not None and f"\n{one.rule}. " not in named[-1]:
            found.append(f"line {one.line}: section {one.sections[-1]} has no rule {one.rule}")
        elif one.term is not None and f"**{one.term}.**" not in named[-1]:
            found.append(f'line {one.line}: section {one.sections[-1]} has no "{one.term}"')
    return found


def _numbers(text: str) -> Iterator[int]:
    """`2 to 4, 8 and 10` as 2, 3, 4, 8, 10."""
    for first, last in re.findall(r"(\d+)(?:(?:\W+to\W+|-)(\d+))?", text):
        yield from range(int(first), int(last or first) + 1)
