"""What `polynya init --from` proposes: for files, for a database, for a topic."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.errors import ConfigError
from polynya.model.names import S3Location
from polynya.store.object_store import ObjectStore

if TYPE_CHECKING:
    from polynya.proposal.proposal import TriedProposal

_DATABASES: Final = ("postgresql://", "postgres://", "mysql://", "mariadb://")
_LANDING: Final = "./landing"


@dataclass(frozen=True, slots=True)
class Proposals:
    """The files of a project that are proposed, and what a person should know.

    Attributes:
        files: the texts of tasks and connections, by path.
        notes: sentences for the terminal.
        data: the same for programs.
        landing: the landing place of the target.
        copies: the path in `store` of each file to copy, by its path in the project.
        store: holds them.
        before: what is to be done before the project can run, "" for nothing.
        look: the command that shows what a run would do.
    """

    files: Mapping[str, str]
    notes: Sequence[str]
    data: Mapping[str, object]
    landing: str = _LANDING
    copies: Mapping[str, str] = field(default_factory=dict)
    store: ObjectStore | None = None
    before: str = ""
    look: str = "polynya validate"


def proposals(
    place: str, project: str, *, tables: Sequence[str], password_env: str | None
) -> Proposals:
    """What is proposed for a place. Raises ConfigError without any proposal."""
    if place.lower().startswith(_DATABASES):
        return _of_database(place, project, tables, password_env)
    if tables or password_env:
        raise WRONG_USAGE("`--tables` and `--password-env` belong to the URL of a database")
    return proposals_of_files(place, project)


def proposals_of_files(place: str, schema: str) -> Proposals:
    """What is proposed for the files of a place. Raises ConfigError without any proposal."""
    # Start-up time: pyarrow, DuckDB, and the readers of all formats.
    from polynya.proposal.proposal import proposed
    from polynya.proposal.samples import found_files
    from polynya.proposal.task_file import task_text

    found = found_files(place)
    tried, left_out = [], []
    for family in found.families:
        try:
            tried.append(proposed(found, family, schema))
        except ConfigError as error:
            left_out.append(error)
    if not tried:
        raise left_out[0]
    landing, folder = _LANDING, None
    copies: dict[str, str] = {}
    if found.place is not None:
        above, _, folder = found.place.prefix.rpartition("/")
        landing = str(S3Location(found.place.bucket, above))
    else:
        for one in tried:
            names = {path: path for path in one.family.files}
            if len(names) == 1 and Path(place).expanduser().is_file():
                names = {path: Path(place).name for path in names}
            copies |= {f"landing/{one.family.name}/{name}": path for path, name in names.items()}
    return Proposals(
        files={f"tasks/{one.family.name}.yml": task_text(one, schema, folder) for one in tried},
        notes=[
            *(f"{one.family.name}: {one.outcome}" for one in tried),
            *(f"left out: {error.where}: {error.message}; fix: {error.fix}" for error in left_out),
        ],
        data={"datasets": [_data(one) for one in tried]},
        landing=landing,
        copies=copies,
        store=found.store,
    )


def _data(tried: TriedProposal) -> dict[str, object]:
    """A proposal as JSON."""
    outcome = tried.outcome
    return {
        "name": tried.family.name,
        "format": tried.proposal.format.value,
        "files": len(tried.family.files),
        "records": outcome.records,
        "copied": outcome.copied,
        "quarantined": dict(outcome.quarantined),
        "replaced": outcome.replaced,
        "not_records": dict(outcome.no_records),
        "whole": outcome.is_whole,
    }


def _of_database(
    place: str, project: str, tables: Sequence[str], password_env: str | None
) -> Proposals:
    """What is proposed for a database. Raises ConfigError."""
    # Start-up time: drivers of databases.
    from polynya.proposal.databases import (
        DatabaseUrl,
        database_proposal,
        database_url,
        looked_at,
        variable_of,
    )

    url: DatabaseUrl = database_url(place)
    notes = []
    if password_env is not None:
        password = os.environ.get(password_env)
        if password is None:
            raise WRONG_USAGE(
                f"the variable {password_env[:60]} is not set",
                fix=f"set it to the password of {url.user}, or leave `--password-env` out",
            )
    elif url.password is not None:
        password = url.password
        notes.append(
            "the password in the URL was used and is in no file; it may be in the history of your "
            "shell: next time leave it out, and Polynya asks"
        )
    elif sys.stdin.isatty():
        password = getpass.getpass(f"Password of {url} (empty for none): ")
    else:
        raise WRONG_USAGE(
            "a password cannot be asked for: the input is not a terminal",
            fix="name the variable of the environment that has it: `--password-env NAME`",
        )
    found = looked_at(url, password, tables)
    variable = (password_env or variable_of(url)) if password else None
    made = database_proposal(found, project, variable)
    is_set = variable is not None and os.environ.get(variable) == password
    return Proposals(
        files=made.files,
        notes=[f"{url.name}: {made.outcome}", *notes, *made.notes],
        data={
            "captures": [
                {
                    "name": made.capture,
                    "method": "cdc" if found.follows else "reload",
                    "tables": [
                        {
                            "name": table.name,
                            "key": list(table.key),
                            "rows_estimate": table.rows_estimate,
                            "bytes_estimate": table.bytes_estimate,
                        }
                        for table in found.tables
                    ],
                    "left_out": {name: error.message for name, error in found.refused.items()},
                    "lacking": [{"what": one.what, "fix": one.fix} for one in found.lacking],
                }
            ]
        },
        before="" if variable is None or is_set else f"set {variable} to the password; ",
        look=f"polynya landing preview {made.capture}",
    )
