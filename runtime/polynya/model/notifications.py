"""The notifications of a project: reading `notifications/*.yml`, and what is wrong in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from polynya.model.bindings import ProjectReader
from polynya.model.config.aws import is_loopback
from polynya.model.config.notification import MailChannel, Notification, WebhookChannel
from polynya.model.documents.files import DocumentFile, document_files, parse_file
from polynya.model.documents.problems import Problem, located, suggest
from polynya.model.documents.yaml import Node, NodePath, node_at
from polynya.model.error_catalogue.configuration import (
    DUPLICATE_NAME,
    SECRET_IN_FILE,
    UNUSABLE_NAME,
    WRONG_VALUE,
)
from polynya.model.error_catalogue.notifications import (
    NOTIFICATION_CHANNEL_UNKNOWN,
    NOTIFICATION_UNPROTECTED,
)
from polynya.model.names import is_name, shown
from polynya.model.project_parts import entries, entry, is_written_out

NOTIFICATION_FOLDER: Final = "notifications"
#: Keys of a channel whose values are secrets, and those that may be references, too.
_SECRETS: Final = frozenset({"password", "secret", "token"})
_REFERENCES: Final = _SECRETS | {"user"}
#: Types of channels whose address is a secret.
_SECRET_ADDRESSES: Final = frozenset({"apprise"})


@dataclass(frozen=True, slots=True)
class LoadedNotification:
    """One file: its name, where it stands, and what it says."""

    name: str
    file: str
    settings: Notification
    document: Node = field(repr=False, compare=False)


def read_notifications(directory: Path, reader: ProjectReader) -> list[LoadedNotification]:
    """The valid files of a project folder; the errors of others go to those of the reader."""
    found: dict[str, LoadedNotification] = {}
    for path in document_files(directory / NOTIFICATION_FOLDER):
        shown_as = f"{NOTIFICATION_FOLDER}/{path.name}"
        name = path.stem
        if not is_name(name):
            message = f"{shown(name)} is not usable as a name of notifications"
            reader.errors.append(UNUSABLE_NAME(message, where=shown_as))
            continue
        if name in found:
            message = f"{shown(name)} is also the name of {found[name].file}"
            reader.errors.append(DUPLICATE_NAME(message, where=shown_as))
            continue
        file = reader.read(path, shown_as, _is_read_at_use)
        if file is None:
            continue
        problems = list(written_channel_secrets(file.document))
        settings = parse_file(file, Notification, "notification", reader.errors)
        if settings is not None:
            problems += _problems(settings)
        reader.errors.extend(located(problems, file.document, file.shown_as))
        if settings is not None and file.sound and not problems:
            found[name] = _loaded(name, file, settings)
    return list(found.values())


def _loaded(name: str, file: DocumentFile, settings: Notification) -> LoadedNotification:
    return LoadedNotification(name, file.shown_as, settings, file.document)


def _is_read_at_use(path: NodePath) -> bool:
    """Whether a value may be a reference that is read when a message is sent."""
    if len(path) != 3 or path[0] != "channels":
        return False
    # Only the URL of Apprise is a secret; that of a webhook is checked to be a reference nowhere.
    return path[2] in _REFERENCES or path[2] == "url"


def written_channel_secrets(document: Node) -> Iterator[Problem]:
    """Yield secrets of channels that are written out in a file."""
    for name, channel in entries(entry(document, "channels")):
        kind = node_at(channel, ("type",))
        secret_address = getattr(kind, "value", None) in _SECRET_ADDRESSES
        for key in sorted(_SECRETS | ({"url"} if secret_address else set())):
            if is_written_out(entry(channel, key)):
                what = "an address with a token" if key == "url" else f"a {key}"
                example = f'{key}: "${{secret:notifications#{name}}}"'
                yield Problem(("channels", name, key), SECRET_IN_FILE(what=what, example=example))


def _problems(settings: Notification) -> Iterator[Problem]:
    for name, rule in settings.rules.items():
        for index, channel in enumerate(rule.to):
            if channel not in settings.channels:
                fix = suggest(channel, sorted(settings.channels))
                error = NOTIFICATION_CHANNEL_UNKNOWN(channel=shown(channel), fix=fix)
                yield Problem(("rules", name, "to", index), error)
        if rule.remind_every is not None and rule.remind_every < rule.at_most_every:
            message = "`remind_every` is shorter than `at_most_every`"
            fix = "give it at least that time"
            yield Problem(("rules", name, "remind_every"), WRONG_VALUE(message, fix=fix))
    for key, one in settings.channels.items():
        path = ("channels", key)
        if isinstance(one, WebhookChannel):
            parts = urlsplit(one.url)
            if "${" in one.url:
                message = "the address of a webhook cannot be a secret"
                fix = "write the address, and put the secret into `secret` or `token`"
                yield Problem((*path, "url"), WRONG_VALUE(message, fix=fix))
            elif parts.scheme != "https" and not is_loopback(one.url) and not one.allow_unencrypted:
                yield Problem(
                    (*path, "url"),
                    NOTIFICATION_UNPROTECTED(
                        "messages would go to another machine without TLS",
                        fix="write `https://`, or set `allow_unencrypted: true`",
                    ),
                )
        if isinstance(one, MailChannel):
            yield from _of_mail(path, one)


def _of_mail(path: NodePath, channel: MailChannel) -> Iterator[Problem]:
    if (channel.user is None) != (channel.password is None):
        message = "a login has `user` and `password`"
        yield Problem(path, WRONG_VALUE(message, fix="write both, or none of them"))
    if channel.tls == "none" and not is_loopback(f"http://{channel.host}"):
        yield Problem(
            (*path, "tls"),
            NOTIFICATION_UNPROTECTED(
                "mail would go to another machine without TLS",
                fix="write `tls: starttls` or `tls: tls`",
            ),
        )
