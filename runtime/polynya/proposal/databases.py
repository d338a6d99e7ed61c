"""A database as a proposal: its connection, a capture of its tables, and a task that makes tables.

The catalog is only read. The password is used and never written: the project names a variable of
the environment for it. Names in the catalog are those of others and stay text in the files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from pydantic import ValidationError

from polynya.capture.source import (
    Access,
    ConnectionFinding,
    SourceDatabase,
    SourceTable,
    open_database,
)
from polynya.model.config.capture import has_wildcard, takes
from polynya.model.config.connection import Connection, is_this_machine
from polynya.model.error_catalogue.configuration import NO_SETTINGS_FROM_SOURCE
from polynya.model.errors import PolynyaError
from polynya.observe.events import counted
from polynya.proposal.samples import name_of
from polynya.proposal.yaml_lines import YamlLine, one_line, yaml_lines, yaml_value

#: The types of connections by the beginnings of URLs.
SCHEMES: Final[Mapping[str, str]] = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mariadb",
}
#: Words of the clients of PostgreSQL and MySQL, by what they mean here. `prefer` and its like, with
#: which a password may cross the network without encryption, mean the default.
_TLS: Final[Mapping[str, str]] = {
    "disable": "disable", "disabled": "disable",
    "require": "require", "required": "require",
    "verify-ca": "verify", "verify_ca": "verify",
    "verify-full": "verify", "verify_identity": "verify",
    "allow": "", "prefer": "", "preferred": "",
}  # fmt: skip
_TLS_WORDS: Final = frozenset({"sslmode", "ssl-mode", "ssl_mode"})
#: Types of which ordinary values arrive as something else, as docs/data-types.md lists them.
_INEXACT: Final[Mapping[str, tuple[tuple[re.Pattern[str], str], ...]]] = {
    "postgresql": (
        (re.compile(r"time(?:\(\d\))? with time zone"), "its offset is lost"),
        (re.compile(r"bit(?: varying)?(?:\((?!1\))\d+\))?"), "the number of bits is lost"),
        (re.compile(r"time(?:stamp)?\b.*\[\]"), "milliseconds only"),
        (re.compile(r".*\[\]"), "one dimension only"),
    ),
    "mysql": (
        (re.compile(r"date|datetime(?:\(\d\))?"), "0000-00-00 becomes NULL or 1970-01-01"),
        (re.compile(r"timestamp(?:\(\d\))?"), "0000-00-00 becomes 1970-01-01"),
    ),
}
#: When tables are loaded that cannot be followed: every night.
_NIGHTLY: Final = "0 2 * * *"
_MOST_SHOWN: Final = 5
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """Where a database is, as a URL says it.

    Attributes:
        type: of the connection.
        port: None: the usual one.
        database: "" for all of a server of MySQL or MariaDB.
        password: that in the URL, None without one.
        tls: `verify`, `require` or `disable`.
    """

    type: str
    host: str
    port: int | None
    database: str
    user: str
    password: str | None = field(repr=False)
    tls: str

    def __str__(self) -> str:
        """The URL without the password."""
        port = "" if self.port is None else f":{self.port}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.type}://{self.user}@{host}{port}/{self.database}"

    @property
    def name(self) -> str:
        """What connection and tasks are called after."""
        return name_of(self.database or self.host.partition(".")[0])[:100]

    def connection(self, variable: str | None) -> Connection:
        """The connection, with the variable that has the password. Raises ConfigError."""
        document = {
            "type": self.type, "host": self.host, "port": self.port,
            "database": self.database or None, "user": self.user,
            "password": None if variable is None else {"env": variable},
            "tls": {"mode": self.tls, "allow_unverified": self.tls == "require"},
        }  # fmt: skip
        try:
            return Connection.model_validate(document)
        except ValidationError as error:
            first = error.errors()[0]
            refuse(str(self), f"{first['loc'][0]}: {first['msg']}", "correct the URL")


def database_url(text: str) -> DatabaseUrl:
    """The parts of a URL.

    Raises:
        ConfigError: POLYNYA-CLI-006, the URL lacks something. The message has no password.
    """
    kind = SCHEMES[text.partition("://")[0].lower()]
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        fix = "correct it; a `#`, `/`, `@` or `[` of a password is written as %23, %2F, %40 or %5B"
        refuse(f"{kind}://…", "its host or port cannot be read", fix)
    user = unquote(parts.username or "")
    database = unquote(parts.path.removeprefix("/"))
    password = None if parts.password is None else unquote(parts.password)
    found = DatabaseUrl(kind, host, port, database, user, password, "verify")
    example = f"{kind}://USER@HOST/DATABASE"
    if not host or not user:
        lacks = "host" if not host else "user"
        refuse(_without_password(parts), f"the URL names no {lacks}", f"write `{example}`")
    if not database and kind == "postgresql":
        refuse(str(found), "the URL names no database", f"write `{example}`")
    if any("${" in part or not part.isprintable() for part in (user, database)):
        refuse(str(found), "a name in it cannot be written to a file", "correct the URL")
    return replace(found, tls=_tls(found, parts.query))


def _tls(url: DatabaseUrl, query: str) -> str:
    mode = ""
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name.lower() not in _TLS_WORDS or value.lower() not in _TLS:
            fix = (
                "leave it out; after the `?` only `sslmode` is read: disable, require, verify-full"
            )
            refuse(str(url), f"the parameter `{one_line(name)[:40]}` is not known here", fix)
        mode = _TLS[value.lower()]
    is_local = is_this_machine(url.host)
    if mode == "disable" and not is_local:
        fix = "leave `sslmode` out, or write `sslmode=require`"
        refuse(str(url), "a password would cross the network without encryption", fix)
    return mode or ("disable" if is_local else "verify")


def _without_password(parts: SplitResult) -> str:
    """The end of a URL. Without a user the rest may be a part of a password, too."""
    _, at, place = parts.netloc.rpartition("@")
    return f"{parts.scheme}://…@{place}{parts.path}" if at else f"{parts.scheme}://…"


def refuse(shown: str, reason: str, fix: str) -> NoReturn:
    """Raise the error of a source that nothing can be proposed for."""
    raise NO_SETTINGS_FROM_SOURCE(where=shown, reason=reason, fix=fix)


@dataclass(frozen=True, slots=True)
class LookedDatabase:
    """What the catalog of a database says.

    Attributes:
        follows: its log can be read, so that changes are captured.
        include: patterns of its tables.
        excluded: tables that the patterns take, and that a capture would stop for.
        tables: those that are captured.
        refused: what is not captured, with the error: the excluded ones, views and the like.
        lacking: what the log lacks to be read; empty where it can be.
        notes: what else an operator should know.
    """

    url: DatabaseUrl
    follows: bool
    include: tuple[str, ...]
    excluded: tuple[str, ...]
    tables: tuple[SourceTable, ...]
    refused: Mapping[str, PolynyaError]
    lacking: tuple[ConnectionFinding, ...] = ()
    notes: tuple[ConnectionFinding, ...] = ()


def looked_at(
    url: DatabaseUrl,
    password: str,
    patterns: Sequence[str] = (),
    opened: Callable[[Access], SourceDatabase] = open_database,
) -> LookedDatabase:
    """What a database has, read from its catalog.

    `patterns` choose tables, as `tables.include` of a task does; by default all.

    Raises:
        ConfigError: POLYNYA-CLI-006, it cannot be reached or read, or has no such table.
        PolynyaError: what the database says.
    """
    settings = url.connection(None)
    access = Access(
        type=url.type, host=url.host, port=settings.port_number, database=url.database,
        user=url.user, password=password, tls=url.tls, task=f"{url.name}_capture",
    )  # fmt: skip
    with closing(opened(access)) as database:
        findings = database.findings()
    wrong = tuple(finding for finding in findings if not finding.ok)
    if wrong:
        access = replace(access, follows=False)
        with closing(opened(access)) as database:
            for finding in database.findings():
                if not finding.ok:
                    refuse(str(url), finding.what, finding.fix or "correct the URL")
    with closing(opened(access)) as database:
        include = tuple(patterns) or _all_of(url, database)
        refused = dict(database.refused(include))
        there = database.tables(include, ())
    excluded = tuple(table.name for table in there if table.name in refused)
    tables = tuple(table for table in there if takes(include, excluded, table.name))
    if not tables:
        reason = "no table can be captured" if refused else "no table can be read"
        fix = f"GRANT SELECT to {url.user}, or name others with `--tables`"
        first = next(iter(refused.values()), None)
        refuse(str(url), f"{reason}{f': {first.message}' if first else ''}", fix)
    notes = tuple(finding for finding in findings if finding.ok and finding.fix)
    return LookedDatabase(url, not wrong, include, excluded, tables, refused, wrong, notes)


def _all_of(url: DatabaseUrl, database: SourceDatabase) -> tuple[str, ...]:
    """A pattern for each schema that has tables; of MySQL and MariaDB that of the database."""
    if url.type != "postgresql" and url.database:
        return (f"{url.database}.*",)
    schemas = {table.name.partition(".")[0] for table in database.tables(["*"], ())}
    return tuple(f"{schema}.*" for schema in sorted(schemas)) or ("*",)


@dataclass(frozen=True, slots=True)
class DatabaseProposal:
    """The files of a project for a database, and what a person should know.

    Attributes:
        files: texts by path.
        capture: name of the task that captures.
        variable: that has to hold the password.
        outcome: what a run would do, in a sentence.
        notes: the rest, a line each.
    """

    files: Mapping[str, str]
    capture: str
    variable: str | None
    outcome: str
    notes: tuple[str, ...]


def database_proposal(
    found: LookedDatabase, project: str, variable: str | None
) -> DatabaseProposal:
    """The files for a database; `variable` holds the password, None without one."""
    url = found.url
    url.connection(variable)
    capture = f"{url.name}_capture"
    stores = _stores(found, project)
    files = {
        f"connections/{url.name}.yml": _connection_text(url, variable),
        f"tasks/{capture}.yml": _capture_text(found, capture),
        **{
            f"tasks/{name}.yml": _storage_text(name, schema, capture, include)
            for name, schema, include in stores
        },
    }
    return DatabaseProposal(files, capture, variable, outcome_of(found), _notes(found))


def variable_of(name: str) -> str:
    """The variable of the environment in which a project expects the password."""
    return re.sub(r"[^A-Z0-9_]", "_", f"{name}_PASSWORD".upper())


def outcome_of(found: LookedDatabase) -> str:
    """What a run would do, in a sentence."""
    known = [table.rows_estimate for table in found.tables if table.rows_estimate is not None]
    sizes = [table.bytes_estimate for table in found.tables if table.bytes_estimate is not None]
    rows = f"about {counted(sum(known), 'row')}" if known else "an unknown number of rows"
    if known and len(known) < len(found.tables):
        rows += f" ({counted(len(found.tables) - len(known), 'table')} without statistics)"
    size = f", {_size(sum(sizes))}" if sizes else ""
    then = "then captures each change" if found.follows else "and loads them again every night"
    return f"a run loads {counted(len(found.tables), 'table')}, {rows}{size}, {then}"


def _size(size: int) -> str:
    power = min(max(size.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    return f"{size / 1024**power:,.0f} {_UNITS[power]}"


def _notes(found: LookedDatabase) -> tuple[str, ...]:
    notes = [f"the log cannot be read: {one.what}; fix: {one.fix}" for one in found.lacking]
    keyless = [table.name for table in found.tables if table.lacks_key]
    if keyless:
        what = (
            "each of their events is a row"
            if found.follows
            else "a row is known by its number in the load"
        )
        notes.append(f"without a key: {some(keyless)}; {what}")
    inexact = list(_inexact(found))
    if inexact:
        notes.append(f"not kept exactly: {some(inexact)}")
    notes += [
        f"left out: {name}: {error.message}; fix: {error.fix}"
        for name, error in list(found.refused.items())[:_MOST_SHOWN]
    ]
    if len(found.refused) > _MOST_SHOWN:
        notes.append(f"left out: {len(found.refused) - _MOST_SHOWN:,} more")
    notes += [f"{one.what}; fix: {one.fix}" for one in found.notes if not _repeats(one, keyless)]
    return tuple(one_line(note) for note in notes)


def _inexact(found: LookedDatabase) -> Iterator[str]:
    """Columns of which some values arrive as something else, with what is lost."""
    kinds = _INEXACT["postgresql" if found.url.type == "postgresql" else "mysql"]
    for table in found.tables:
        for column in table.columns:
            loss = next((what for kind, what in kinds if kind.fullmatch(column.type_name)), None)
            if loss is not None:
                yield f"{table.name}.{column.name} ({column.type_name}: {loss})"


def _repeats(finding: ConnectionFinding, keyless: Sequence[str]) -> bool:
    """Whether a finding names tables that were named already."""
    return bool(keyless) and "no replica identity" in finding.what


def some(names: Sequence[str]) -> str:
    """The first of them."""
    return ", ".join(names[:_MOST_SHOWN]) + (", …" if len(names) > _MOST_SHOWN else "")


def _connection_text(url: DatabaseUrl, variable: str | None) -> str:
    lines: list[YamlLine] = [
        (f"type: {url.type}", None),
        (f"host: {yaml_value(url.host)}", None),
    ]
    if url.port is not None:
        lines.append((f"port: {url.port}", None))
    if url.database:
        lines.append((f"database: {yaml_value(url.database)}", None))
    lines.append((f"user: {yaml_value(url.user)}", None))
    if variable is not None:
        reason = "a variable of the environment, read when a capture starts"
        lines.append((f"password: {{env: {variable}}}", reason))
    lines.append(_tls_line(url))
    head = "# yaml-language-server: $schema=../.polynya/schema/connection.v1.json\n"
    return head + yaml_lines(lines)


def _tls_line(url: DatabaseUrl) -> YamlLine:
    if url.tls == "require":
        reason = "as the URL says: encrypted, but the server is not verified; better name its `ca`"
        return "tls: {mode: require, allow_unverified: true}", reason
    reasons = {
        "verify": "encrypted; certificate and host are verified",
        "disable": "the database is on this machine",
    }
    return f"tls: {{mode: {url.tls}}}", reasons[url.tls]


def _capture_text(found: LookedDatabase, name: str) -> str:
    outcome = outcome_of(found)
    head = (
        "# yaml-language-server: $schema=../.polynya/schema/task.v1.json\n"
        f"# Proposed from the catalog of {one_line(str(found.url))}: look at each line.\n"
        f"# {outcome[0].upper()}{outcome[1:]}.\n"
        "apiVersion: polynya/v1\nkind: landing\n"
        f"name: {name}\nconnection: {found.url.name}\n"
    )
    lines: list[YamlLine] = []
    if not found.follows:
        lines += [
            *(
                (f"# To capture changes: {one_line(one.fix or one.what)}", one.what)
                for one in found.lacking
            ),
            ("# Then remove the next two lines.", None),
            ("update_method: reload", "the log cannot be read: changes between loads are not seen"),
            (f'schedule: "{_NIGHTLY}"', "every night at 2, in UTC: check"),
        ]
    later = ", and those that come later" if any(map(has_wildcard, found.include)) else ""
    lines += [
        ("tables:", None),
        (f"  include: {yaml_value(found.include)}", counted(len(found.tables), "table") + later),
    ]
    if found.excluded:
        lines.append(("  exclude:", None))
    lines += [
        (f"    - {yaml_value(table)}", found.refused[table].message) for table in found.excluded
    ]
    return head + yaml_lines(lines)


def _stores(found: LookedDatabase, project: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """Name, schema and patterns of the storage tasks: one for each schema of the database.

    Tables of two schemas may have one name.
    """
    schemas = sorted({table.name.partition(".")[0] for table in found.tables})
    if len(schemas) == 1:
        return [(found.url.name, project, found.include)]
    stores, taken = [], {found.url.name.lower(), f"{found.url.name}_capture".lower()}
    for schema in schemas:
        tables = [table.name for table in found.tables if table.name.startswith(f"{schema}.")]
        patterns = (
            f"{schema}.{pattern.partition('.')[2] or '*'}"
            for pattern in found.include
            if any(takes((pattern,), (), table) for table in tables)
        )
        name = unique = f"{found.url.name}_{name_of(schema)}"[:120]
        number = 1
        while unique.lower() in taken:
            number += 1
            unique = f"{name}_{number}"
        taken.add(unique.lower())
        stores.append((unique, unique, tuple(dict.fromkeys(patterns))))
    return stores


def _storage_text(name: str, schema: str, capture: str, include: Sequence[str]) -> str:
    head = (
        "# yaml-language-server: $schema=../.polynya/schema/task.v1.json\n"
        "apiVersion: polynya/v1\nkind: storage\n"
        f"name: {name}\nschema: {schema}\n"
    )
    lines: list[YamlLine] = [
        (f"landing: {{path: {capture}, format: debezium}}", "what the capture lands"),
        (
            f"include: {yaml_value(include)}",
            "tables, keys, order and types are those of the events",
        ),
        (
            "defaults: {history: true}",
            "every version of a row; leave it out to keep the newest only",
        ),
    ]
    return head + yaml_lines(lines)
