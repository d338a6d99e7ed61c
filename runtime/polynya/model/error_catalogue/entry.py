"""An entry of the error catalogue: everything about one error, once.

An entry is called to make its error, so that raising one takes a line:

    raise BROKERS_UNREACHABLE(where=topic, why=str(error), servers=servers)

A check of a document makes the same error and leaves its line and column to the document:

    yield Problem(path, UNKNOWN_KEY(key=shown(name)))

A few errors carry more than texts: `JOB_RUN_FENCED(reason=text).by(epoch=5, owner="n2")`, and
`CLUSTER_OBJECT_UNREADABLE.raising(NewerDocumentError)(where=key)` for callers that distinguish two
cases of one code.

`message`, `state` and `fix` are templates: `{servers}` stands for the value of that name. A test
compares the names at each call with those in the templates. Values are never templates, whatever
they contain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from typing_extensions import override

from polynya.model.errors import PolynyaError

E = TypeVar("E", bound=PolynyaError)
F = TypeVar("F", bound=PolynyaError)


@dataclass(frozen=True, slots=True)
class ErrorEntry(Generic[E]):
    """One error code: the exception it raises, its texts, and its page.

    Args:
        raises: class of the error.
        code: stable identifier such as `POLYNYA-STR-005`, never reused for another error.
        title: what failed, in a few words; the heading of the page.
        page: when the error is raised and what helps, for `polynya explain` and the docs.
        message: what failed, in one sentence; the title if it is not given.
        state: what this means for the data.
        fix: the command or the edit that helps.
    """

    raises: type[E]
    code: str
    title: str
    page: str
    message: str | None = None
    state: str | None = None
    fix: str | None = None

    def __call__(
        self,
        message: str | None = None,
        *,
        where: str | None = None,
        why: str | None = None,
        state: str | None = None,
        fix: str | None = None,
        **values: object,
    ) -> E:
        """Return the error with the values in its texts.

        Args:
            message: text for an error whose message only the caller knows; not a template.
            where: `file:line:col`, or the name of the task, dataset or file concerned.
            why: the cause, when the message does not say it.
            state: like `message`, instead of the entry's.
            fix: like `message`, instead of the entry's.
            values: the values of the templates.
        """
        safe = _Values(values)
        return self.raises(
            self.code,
            message or (self.message or self.title).format_map(safe),
            where=where,
            state=state or (self.state and self.state.format_map(safe)),
            fix=fix or (self.fix and self.fix.format_map(safe)),
            why=why,
        )

    def parts(self) -> dict[str, str | None]:
        """Return message, state and fix with `NAME` for each value; None for those that vary."""
        templates = {"message": self.message, "state": self.state, "fix": self.fix}
        return {part: text and text.format_map(_Values()) for part, text in templates.items()}

    def raising(self, raises: type[F]) -> ErrorEntry[F]:
        """Return the same entry for another class, by which callers tell a special case apart."""
        return ErrorEntry(
            raises, self.code, self.title, self.page, self.message, self.state, self.fix
        )


class _Values(dict[str, object]):
    """The values of a call. A missing one shows as its name: the error itself must come out."""

    def __missing__(self, name: str) -> _Name:
        return _Name(name.upper())


class _Name(str):
    """A name in place of a value, whatever format the template asks for."""

    __slots__ = ()

    @override
    def __format__(self, _: str) -> str:
        return str(self)
