"""Views in the Glue Data Catalog: written only over what was read, and only over our own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from polynya.model.config.aws import AwsAccess
from polynya.model.error_catalogue.operation import VIEW_CHANGED_REPEATEDLY, VIEW_NAME_TAKEN
from polynya.store.aws.clients import AWS_ERRORS, client, code_of, explained, is_transient
from polynya.store.clock import Retry

T = TypeVar("T")

_ATTEMPTS: Final = 5
_MISSING: Final = "EntityNotFoundException"
#: Another writer was faster: with the version that we named, or with the name.
_OVERTAKEN: Final = frozenset(
    {"AlreadyExistsException", "ConcurrentModificationException", "VersionMismatchException"}
)


@dataclass(frozen=True, slots=True)
class StoredView:
    """What a Glue database has under a name. `parameters` are those of the table."""

    version: str
    parameters: Mapping[str, str]


class GlueViews:
    """The views of a Glue catalog. `mark` is the parameter that all of ours have."""

    def __init__(
        self, access: AwsAccess, catalog_id: str | None, mark: str, *, retry: Retry | None = None
    ) -> None:
        self._glue: Any = client("glue", access)
        self._catalog = {"CatalogId": catalog_id} if catalog_id else {}
        self._mark = mark
        self._retry = retry or Retry()

    def find(self, database: str, name: str) -> StoredView | None:
        """The table or view of this name, None when there is none. Raises DependencyError."""
        of = {"DatabaseName": database, "Name": name}
        table = self._asked(
            lambda: self._glue.get_table(**self._catalog, **of)["Table"],
            ("read a view", database, name, "glue:GetTable"),
        )
        if table is None:
            return None
        return StoredView(str(table.get("VersionId", "")), table.get("Parameters", {}))

    def publish(self, database: str, table_input: Mapping[str, Any]) -> bool:
        """Make a view as it is given. False when it is that already.

        Raises:
            OperationError: something that is not ours has the name (POLYNYA-VIEW-001).
            ConflictError: others changed it all the time (POLYNYA-VIEW-002).
            DependencyError: Glue refuses or does not answer.
        """
        name = table_input["Name"]
        for _ in range(_ATTEMPTS):
            stored = self.find(database, name)
            if stored is not None and self._mark not in stored.parameters:
                raise VIEW_NAME_TAKEN(where=f"{database}.{name}", view=f"{database}.{name}")
            wanted = table_input["Parameters"][self._mark]
            if stored is not None and stored.parameters[self._mark] == wanted:
                return False
            if self._write(database, table_input, stored):
                return True
        view = f"{database}.{name}"
        raise VIEW_CHANGED_REPEATEDLY(where=view, view=view)

    def _write(
        self, database: str, table_input: Mapping[str, Any], stored: StoredView | None
    ) -> bool:
        """Whether it was written; if not, somebody else wrote first or the database was made."""
        of = {"DatabaseName": database, "TableInput": table_input, **self._catalog}
        name = table_input["Name"]
        if stored is None:
            grant = ("create a view", database, name, "glue:CreateTable")
            done = self._asked(lambda: self._done(self._glue.create_table, of), grant)
        else:
            of |= {"VersionId": stored.version} if stored.version else {}
            grant = ("change a view", database, name, "glue:UpdateTable")
            done = self._asked(lambda: self._done(self._glue.update_table, of), grant)
        if done is None and stored is None:
            self._create_database(database)
        return bool(done)

    def _create_database(self, name: str) -> None:
        of = {"DatabaseInput": {"Name": name}, **self._catalog}
        grant = ("create a database", name, "", "glue:CreateDatabase")
        self._asked(lambda: self._done(self._glue.create_database, of), grant)

    @staticmethod
    def _done(call: Callable[..., object], of: Mapping[str, Any]) -> bool:
        try:
            call(**of)
        except AWS_ERRORS as error:
            if code_of(error) in _OVERTAKEN:
                return False
            raise
        return True

    def _asked(self, question: Callable[[], T], meaning: tuple[str, str, str, str]) -> T | None:
        """The answer, None when what was asked about does not exist."""
        action, database, name, grant = meaning
        try:
            return self._retry.run(question, is_transient)
        except AWS_ERRORS as error:
            if code_of(error) == _MISSING:
                return None
            raise explained(
                error,
                action=action,
                resource=f"Glue {database}.{name}" if name else f"Glue database {database}",
                grant=f"{grant} on the catalog, the database {database} and its tables",
            ) from error
