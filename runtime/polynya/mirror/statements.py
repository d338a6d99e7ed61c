"""What a mirror needs of its target: statements in its SQL, and a session to carry them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from polynya.lake.fold.shape import Shape
from polynya.model.config.dataset import Relations
from polynya.model.names import Dialect

ObjectKind: TypeAlias = Literal["TABLE", "VIEW"]
#: Opens a text of the settings: its secrets.
Opened: TypeAlias = Callable[[str], str]

#: The longest time for the answer to a statement, in seconds.
ANSWER_SECONDS: Final = 300


@dataclass(frozen=True, slots=True)
class ObjectText:
    """An object that has to be there.

    `text` makes it: the query of a view, or the options of a table. `comment` marks it, `owner`
    tells the objects of one mirror from those of others.
    """

    name: str
    kind: ObjectKind
    text: str
    comment: str
    owner: str


class TargetStatements(Protocol):
    """The statements about the objects of a mirror in one target. Pure: it asks nothing.

    `dialect` is that of the views. `kinds` are those of the objects that the mirror makes; others
    are never its own. `finds_commits` says whether the target reads the newest commit by itself,
    so that no table is ever behind. `longest_name` is set where the target cuts longer names
    without an error, in bytes of UTF-8.
    """

    dialect: Dialect
    kinds: frozenset[str]
    finds_commits: bool
    longest_name: int | None

    def stored(self, name: str) -> str:
        """A name as the target stores it."""
        ...

    def table(self, relations: Relations) -> tuple[str, str] | None:
        """Name and options of the table that the mirror makes; None if it makes views only."""
        ...

    def table_path(self, relations: Relations) -> str:
        """Where the views find the internal table, quoted."""
        ...

    def why_not(self, shape: Shape, format_version: int) -> str | None:
        """Why the target cannot read a table; None if it can."""
        ...

    def note(self, format_version: int) -> str | None:
        """What people should know about a table of this version of Iceberg's format."""
        ...

    def create(self, thing: ObjectText) -> tuple[str, ...]:
        """Make an object. Fails if the name is taken, and leaves none without its comment."""
        ...

    def replace(self, thing: ObjectText, *, same_columns: bool) -> tuple[str, ...]:
        """Give an object of the mirror its new text and comment."""
        ...

    def refresh(self, relations: Relations) -> str | None:
        """Let the target know the newest commit; None if it always does."""
        ...

    def drop(self, kind: ObjectKind, name: str) -> str:
        """Drop a table, whose files stay, or a view."""
        ...

    def is_unfinished(self, owner: str, name: str) -> bool:
        """Whether an object of this name is what a kill left of a creation of this mirror."""
        ...


class MirrorSession(Protocol):
    """A session with the target of a mirror. All raise STATEMENT_FAILED or TARGET_UNREACHABLE."""

    def objects(self) -> list[tuple[str, str, str]]:
        """All tables and views of the schema: name, `TABLE` or `VIEW`, comment."""
        ...

    def execute(self, sql: str) -> None:
        """Carry a statement out."""
        ...

    def metadata_of(self, table: str) -> str | None:
        """The metadata file that a table of the mirror shows; None where nothing tells."""
        ...

    def close(self) -> None:
        """End the session."""
        ...


def shortened(sql: str) -> str:
    """The beginning of a statement, in one line."""
    line = " ".join(sql.split())
    return line if len(line) <= 120 else f"{line[:117]}..."


def said(answer: object, secrets: Sequence[str] = ()) -> str:
    """What a target says, in one line, without secrets."""
    line = str(answer)
    for secret in secrets:
        line = line.replace(secret, "***") if secret else line
    return " ".join(line.split())[:500] or type(answer).__name__
