"""What `polynya init --from` proposes: for files, for a database, for a topic."""

from __future__ import annotations

import getpass
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polynya.cli.context import CommandContext
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
    context: CommandContext,
    place: str,
    project: str,
    *,
    tables: Sequence[str],
    password_env: str | None,
) -> Proposals:
    """What is proposed for a place. Raises ConfigError without any proposal."""
    if place.lower().startswith("kafka://") and not tables:
        return _of_topic(context, place, project, password_env)
    if place.lower().startswith(_DATABASES):
        return _of_database(place, project, tables, password_env)
    if tables or password_env:
        raise WRONG_USAGE("`--tables` and `--password-env` belong to the URL of a server")
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
        database_proposal,
        database_url,
        looked_at,
        variable_of,
    )

    url = database_url(place)
    password = _password(str(url), url.user, url.password, password_env)
    notes = []
    if url.password is not None and password_env is None:
        notes.append(
            "the password in the URL was used and is in no file; it may be in the history of your "
            "shell: next time leave it out, and Polynya asks"
        )
    found = looked_at(url, password, tables)
    variable = (password_env or variable_of(url.name)) if password else None
    made = database_proposal(found, project, variable)
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
        before=_to_set(variable, password),
        look=f"polynya landing preview {made.capture}",
    )


def _password(url: str, user: str, given: str | None, variable: str | None) -> str:
    """The password: of a variable of the environment, of the URL, or as somebody types it."""
    if variable is not None:
        password = os.environ.get(variable)
        if password is None:
            raise WRONG_USAGE(
                f"the variable {variable[:60]} is not set",
                fix=f"set it to the password of {user}, or leave `--password-env` out",
            )
        return password
    if given is not None:
        return given
    if not sys.stdin.isatty():
        raise WRONG_USAGE(
            "a password cannot be asked for: the input is not a terminal",
            fix="name the variable of the environment that has it: `--password-env NAME`",
        )
    return getpass.getpass(f"Password of {url} (empty for none): ")


def _to_set(variable: str | None, password: str) -> str:
    """What is to be set before a run, "" for nothing."""
    is_set = variable is None or os.environ.get(variable) == password
    return "" if is_set else f"set {variable} to the password; "


def _of_topic(
    context: CommandContext, place: str, project: str, password_env: str | None
) -> Proposals:
    """What is proposed for a topic. Raises ConfigError."""
    # Start-up time: the readers of all formats, and Spark.
    from polynya.engine import session
    from polynya.model.loader import load_project
    from polynya.proposal.databases import variable_of
    from polynya.proposal.topics import (
        MOST_BYTES,
        MOST_MESSAGES,
        project_to_read,
        proposed_topic,
        reading_of,
        topic_files,
        topic_notes,
        topic_url,
    )
    from polynya.streams.kafka.sampling import topic_sample

    url = topic_url(place)
    password = _password(str(url), url.user, None, password_env) if url.user else ""
    variable = (password_env or variable_of(url.name)) if url.user else None
    reading = reading_of(url, password)
    with tempfile.TemporaryDirectory(prefix="polynya-init-", ignore_cleanup_errors=True) as folder:
        place_of_project = Path(folder, "project")
        for path, text in project_to_read(url).items():
            (place_of_project / path).parent.mkdir(parents=True, exist_ok=True)
            (place_of_project / path).write_text(text, "utf-8")
        loaded = load_project(place_of_project)
        with context.starting(loaded):
            spark = session.start_spark(session.throwaway(loaded, Path(folder, "spark")))
        sample = topic_sample(spark, reading, url.topic, most=MOST_MESSAGES, most_bytes=MOST_BYTES)
        Path(folder, "sample").mkdir()
        found = proposed_topic(url, sample, project, Path(folder, "sample"))
    outcome = found.outcome
    return Proposals(
        files=topic_files(found, project, variable),
        notes=[f"{url.name}: {outcome}", *topic_notes(found, sample)],
        data={
            "topics": [
                {
                    "name": url.name,
                    "topic": url.topic,
                    "content": found.content.value,
                    "tables": list(found.tables),
                    "partitions": sample.partitions,
                    "records": outcome.records,
                    "copied": outcome.copied,
                    "quarantined": dict(outcome.quarantined),
                    "whole": outcome.is_whole,
                }
            ]
        },
        before=_to_set(variable, password),
        look=f"polynya preview {url.landing}",
    )
