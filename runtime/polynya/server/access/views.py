"""The views that a person may read, and the columns that are masked for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from polynya.model.config.access import AccessDocument, ViewKind
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.error_catalogue.access import NOT_READABLE
from polynya.model.names import shown
from polynya.model.types import DataType
from polynya.server.access.roles import READS_ALL, Person, roles_of

if TYPE_CHECKING:
    import pyarrow as pa

    from polynya.query.committed_rows import RowLimits
    from polynya.query.embedded import EmbeddedView

ALL_KINDS: Final[tuple[ViewKind, ...]] = ("current", "history", "changes")


@dataclass(frozen=True, slots=True)
class Readable:
    """What a person may read of a dataset.

    Attributes:
        kinds: the kinds of views; none: nothing of the dataset.
        masks: for each grant that allows it, the patterns of columns that it masks. A column is
            shown as NULL if every grant masks it.
        reason: the role or the grants that decided.
    """

    kinds: frozenset[ViewKind]
    masks: tuple[tuple[str, ...], ...] = ()
    reason: str = ""

    @property
    def whole(self) -> bool:
        """Whether nothing is masked, so that an engine may read the files themselves."""
        return bool(self.kinds) and (not self.masks or any(not masked for masked in self.masks))

    def masked(self, column: str) -> bool:
        """Whether a column is shown as NULL. Its case does not matter, as in SQL."""
        return bool(self.masks) and all(
            any(fnmatchcase(column.casefold(), one.casefold()) for one in masked)
            for masked in self.masks
        )


_ALL: Final = frozenset(ALL_KINDS)


def may_read(
    person: Person, dataset: str, document: AccessDocument | None, kind: ViewKind | None = None
) -> Readable:
    """What a person may read of a dataset `schema.name`.

    Args:
        person: the person of the request.
        dataset: its name, as `grants` match it.
        document: the access document; without one, the person at this machine reads all.
        kind: the view that is asked for: only grants of this kind count for the masks.
    """
    if document is None:
        local = person.proof == "local"
        return Readable(_ALL if local else frozenset(), (), "no access.yml")
    for role in roles_of(person, document):
        if role in READS_ALL:
            return Readable(_ALL, (), f"{role.value} reads all")
    found = [
        grant
        for grant in document.grants
        if not person.subjects.isdisjoint(grant.to)
        and any(fnmatchcase(dataset.casefold(), one.casefold()) for one in grant.datasets)
        and (kind is None or kind in grant.views)
    ]
    kinds = frozenset(one for grant in found for one in grant.views)
    return Readable(kinds, tuple(grant.masked for grant in found), f"{len(found)} grants")


def reads_whole_project(person: Person, document: AccessDocument | None) -> bool:
    """Whether a person may read every kind of view of every dataset, with nothing masked.

    That opens the REST catalog: its tables hold all versions, and engines read the files.
    """
    return all(may_read(person, "*", document, kind).whole for kind in ALL_KINDS)


def kind_of_view(dataset: ResolvedDataset, view: str) -> ViewKind | None:
    """The kind of a view `schema.view` of a dataset, None if it is not one of its views."""
    relations = dataset.relations
    kinds: dict[str, ViewKind] = {
        relations.view: "current",
        relations.current_stored_view: "current",
        relations.history_view: "history",
        relations.history_stored_view: "history",
        relations.changes_view: "changes",
    }
    if relations.headers_view is not None:
        kinds[relations.headers_view] = "current"
    called = {f"{relations.schema}.{one}".casefold(): kind for one, kind in kinds.items()}
    return called.get(view.casefold())


class MaskedView:
    """A view whose masked columns are NULL in every row that is read of it."""

    def __init__(self, view: EmbeddedView, readable: Readable) -> None:
        self._view, self._readable = view, readable

    @property
    def name(self) -> str:
        """`schema.view`."""
        return self._view.name

    @property
    def columns(self) -> Mapping[str, DataType] | None:
        """Names and types of the columns: a masked one keeps its type."""
        return self._view.columns

    @property
    def keys(self) -> Sequence[str]:
        """The columns that tell the rows apart; none if one of them is masked."""
        keys = self._view.keys
        return () if any(map(self._readable.masked, keys)) else keys

    def rows(self, columns: Sequence[str], limits: RowLimits) -> pa.RecordBatchReader:
        """Some columns of all rows. Values of masked ones do not reach the statement."""
        # Start-up time.
        import pyarrow as pa

        rows = self._view.rows(columns, limits)
        is_masked = [self._readable.masked(name) for name in rows.schema.names]
        schema = pa.schema(
            [
                field.with_nullable(nullable=True) if masked else field
                for field, masked in zip(rows.schema, is_masked, strict=True)
            ]
        )

        def shown(batch: pa.RecordBatch) -> pa.RecordBatch:
            values = [
                pa.nulls(batch.num_rows, values.type) if masked else values
                for values, masked in zip(batch.columns, is_masked, strict=True)
            ]
            return pa.RecordBatch.from_arrays(values, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, map(shown, rows))


def guarded_find(
    find: Callable[[str], EmbeddedView],
    datasets: Sequence[ResolvedDataset],
    person: Person,
    document: AccessDocument | None,
) -> Callable[[str], EmbeddedView]:
    """The `find` of a statement, which gives a person only what they may read.

    What it gives raises RefusedError POLYNYA-ACC-003 for other views, existing or not.
    """

    def found(name: str) -> EmbeddedView:
        known = ((one, kind_of_view(one, name)) for one in datasets)
        dataset, kind = next(((one, kind) for one, kind in known if kind is not None), (None, None))
        # Tables that others maintain are granted by their own name, as Current views.
        called = name if dataset is None else dataset.relations.current
        wanted: ViewKind = kind or "current"
        readable = may_read(person, called, document, wanted)
        if dataset is None and "__" in name:
            # Of a dataset that was found in its data: which kind of view it is, is not known.
            called = name.partition("__")[0]
            whole = all(may_read(person, called, document, one).whole for one in ALL_KINDS)
            readable = readable if whole else Readable(frozenset())
        if wanted not in readable.kinds:
            raise NOT_READABLE(where=shown(name), view=shown(name), person=person.name)
        view = find(name)
        return view if readable.whole else MaskedView(view, readable)

    return found
