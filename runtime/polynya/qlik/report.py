"""The report of an import: per object what was translated, what differs, and what was lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Final, Literal, TypeAlias

from polynya.observe.events import counted
from polynya.qlik.documents import one_line

Verdict: TypeAlias = Literal["translated", "differs", "lost"]
VERDICTS: Final[tuple[Verdict, ...]] = ("lost", "differs", "translated")
#: What Markdown and HTML would read as more than text.
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>#|!&~])")


@dataclass(frozen=True, slots=True)
class ReportLine:
    """What became of one setting or object.

    Attributes:
        object: the task, dataset or file.
        verdict: translated as it was, with a difference, or lost.
        where: `file:line:col`, or `file:$.path` in a document of Replicate.
        what: the setting in the words of Qlik.
        why: what it became, what differs, or why it is lost.
        todo: what a person has to do, "" for nothing.
        code: the code of a loss or difference, "" otherwise.
    """

    object: str
    verdict: Verdict
    where: str
    what: str
    why: str
    todo: str = ""
    code: str = ""

    def __str__(self) -> str:
        """One line for the terminal."""
        todo = f"; {self.todo}" if self.todo else ""
        code = f" ({self.code})" if self.code else ""
        # A path in a JSON document is its place.
        what = "" if self.where.endswith(self.what) else f"{self.what}: "
        return f"{self.where}: {what}{self.why}{todo}{code}"


@dataclass(slots=True)
class ImportReport:
    """All lines, in the order in which the import met them."""

    lines: list[ReportLine] = field(default_factory=list)

    def add(
        self,
        object_: str,
        verdict: Verdict,
        where: str,
        what: str,
        why: str,
        *,
        todo: str = "",
        code: str = "",
    ) -> None:
        """Add a line; texts of others are cut to what can be printed on one line."""
        self.lines.append(
            ReportLine(
                one_line(object_),
                verdict,
                one_line(where),
                one_line(what),
                one_line(why),
                one_line(todo),
                code,
            )
        )

    def take_back(self, object_: str) -> None:
        """Make losses of what was translated for an object, whose task is left out."""
        self.lines = [
            replace(line, verdict="lost", why=f"its task is left out; else {line.why}")
            if line.object == one_line(object_) and line.verdict != "lost"
            else line
            for line in self.lines
        ]

    @property
    def counts(self) -> dict[str, int]:
        """How many lines there are of each verdict."""
        found = Counter(line.verdict for line in self.lines)
        return {verdict: found[verdict] for verdict in VERDICTS}

    @property
    def summary(self) -> str:
        """The counts in one sentence."""
        counts = self.counts
        return (
            f"{counted(counts['translated'], 'setting')} translated, "
            f"{counts['differs']} with a difference, {counts['lost']} lost"
        )

    def objects(self) -> Iterator[tuple[str, list[ReportLine]]]:
        """The lines of each object, losses first."""
        by_object: dict[str, list[ReportLine]] = {}
        for line in self.lines:
            by_object.setdefault(line.object, []).append(line)
        for name, lines in by_object.items():
            yield name, sorted(lines, key=lambda line: VERDICTS.index(line.verdict))

    def as_data(self) -> list[dict[str, str]]:
        """The lines for programs."""
        return [asdict(line) for line in self.lines]

    def as_text(self) -> str:
        """Losses and differences for the terminal; what was translated is counted."""
        texts = []
        for name, lines in self.objects():
            same = sum(line.verdict == "translated" for line in lines)
            texts.append(f"{name}: {counted(same, 'setting')} translated")
            texts += [
                f"  {line.verdict:<8} {line}" for line in lines if line.verdict != "translated"
            ]
        return "\n".join([*texts, self.summary])

    def as_markdown(self, source: str) -> str:
        """The whole report as a page."""
        texts = ["# Import from Qlik", "", f"Source: {_plain(source)}. {self.summary}.", ""]
        for name, lines in self.objects():
            texts += [f"## {_plain(name)}", ""]
            texts += ["| result | place | setting | what became of it | to do |"]
            texts += ["|---|---|---|---|---|"]
            texts += [
                f"| {line.verdict} | {_plain(line.where)} | {_plain(line.what)} | "
                f"{_plain(line.why)} | {_plain(line.todo)} |"
                for line in lines
            ]
            texts.append("")
        return "\n".join(texts)


def _plain(text: str) -> str:
    """A text of others inside Markdown: nothing in it is markup."""
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", one_line(text))
