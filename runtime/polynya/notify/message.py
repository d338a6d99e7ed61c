"""Messages as text and as JSON.

A message says names, codes, times and figures. A name may come from a file or a database, so each
channel gets it in a form in which nothing of it is obeyed: here without control characters, and
then escaped by the channel.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from polynya.model.config.notification import SEVERITIES, Severity
from polynya.notify.conditions import Condition
from polynya.notify.decide import Notice, Route, Told

#: Notices of a message that are written out; the others are counted.
MOST_NOTICES: Final = 20
_MOST_CHARACTERS: Final = 120
#: What may stand in a command that somebody copies.
_HARMLESS: Final = re.compile(r"[A-Za-z0-9_./-]+")
_WORDS: Final[Mapping[str, str]] = {"opened": "", "reminder": "still: ", "resolved": "resolved: "}


@dataclass(frozen=True, slots=True)
class NotificationMessage:
    """What a channel sends. `id` is the same for each attempt to deliver it."""

    id: str
    subject: str
    text: str
    severity: Severity
    is_over: bool
    body: Mapping[str, Any]


def plain(text: str, limit: int = _MOST_CHARACTERS) -> str:
    """A name without characters that a terminal, a mail or a chat would obey, cut at a limit."""
    shown = "".join(
        "?" if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} else one
        for one in text[: 4 * limit]
    )
    words = " ".join(shown.split())
    return words if len(words) <= limit else words[: limit - 1] + "…"


def message_of(
    route: Route,
    notices: tuple[Notice, ...],
    told: Mapping[Any, Told],
    *,
    project: str,
    target: str,
    now: datetime,
) -> NotificationMessage:
    """The message of a route; `notices` is not empty."""
    ranked = sorted(
        notices,
        key=lambda one: (
            one.kind == "resolved",
            -SEVERITIES.index(one.condition.severity),
            one.condition.key,
        ),
    )
    shown, more = ranked[:MOST_NOTICES], len(ranked) - MOST_NOTICES
    lines = [line for one in shown for line in _lines(one, now)]
    if more > 0:
        lines.append(f"and {more:,} more: polynya notification list")
    rule = f"{route.file}.{route.rule}"
    lines += ["", f"project {plain(project)}, target {plain(target)}, rule {plain(rule)}"]
    is_over = all(one.kind == "resolved" for one in notices)
    severity = ranked[0].condition.severity
    id_ = _identity(route, ranked, told)
    return NotificationMessage(
        id=id_,
        subject=_subject(ranked, project),
        text="\n".join(lines),
        severity=severity,
        is_over=is_over,
        body={
            "version": 1,
            "id": id_,
            "at": now.isoformat(),
            "project": project,
            "target": target,
            "rule": rule,
            "severity": severity,
            "resolved": is_over,
            "notices": [_as_json(one) for one in shown],
            "more": max(more, 0),
        },
    )


def test_message(route: Route, *, project: str, target: str, now: datetime) -> NotificationMessage:
    """A message that tells nothing, to try a channel."""
    id_ = hashlib.sha256(f"{route.id} {now.isoformat()}".encode()).hexdigest()[:32]
    text = (
        "This is a test: nothing is wrong.\n\n"
        f"project {plain(project)}, target {plain(target)}, channel "
        f"{plain(f'{route.file}.{route.channel}')}"
    )
    body = {
        "version": 1, "id": id_, "at": now.isoformat(), "project": project, "target": target,
        "rule": None, "severity": "warning", "resolved": False, "notices": [], "more": 0,
        "test": True,
    }  # fmt: skip
    subject = f"[polynya {plain(project, 40)}] test"
    return NotificationMessage(id_, subject, text, "warning", is_over=False, body=body)


def _identity(route: Route, notices: list[Notice], told: Mapping[Any, Told]) -> str:
    """The same for the same notices, in another process, too."""
    parts = [route.id]
    for one in notices:
        before = told.get(one.condition.key)
        since = one.condition.since
        # How long a change has waited is measured again each time.
        began = f"{since:%Y%m%dT%H}" if one.condition.key.cause == "stale" else since.isoformat()
        last = "" if before is None else before.at.isoformat()
        parts.append("\x1f".join((one.kind, *one.condition.key, began, last)))
    return hashlib.sha256("\x1e".join(parts).encode()).hexdigest()[:32]


def _subject(notices: list[Notice], project: str) -> str:
    head = f"[polynya {plain(project, 40)}]"
    if len(notices) == 1:
        one = notices[0]
        what = f"{plain(one.condition.key.name, 60)}: {one.condition.title}"
        return f"{head} {_WORDS[one.kind]}{what}"
    kinds = Counter("resolved" if one.kind == "resolved" else "open" for one in notices)
    parts = [f"{number} {kind}" for kind, number in sorted(kinds.items())]
    return f"{head} {', '.join(parts)}: {plain(notices[0].condition.key.name, 60)} and others"


def _lines(notice: Notice, now: datetime) -> list[str]:
    one = notice.condition
    figures = []
    if one.key.detail and one.key.cause == "expectation":
        figures.append(plain(one.key.detail, 80))
    if one.count:
        figures.append(f"{one.count:,} record{'' if one.count == 1 else 's'}")
    if one.code:
        figures.append(one.code)
    about = f" ({', '.join(figures)})" if figures else ""
    lines = [f"{_WORDS[notice.kind]}{one.severity}: {plain(one.key.name)}: {one.title}{about}"]
    if notice.kind == "resolved":
        return lines
    lines.append(f"  for {_duration(now - one.since)}, since {one.since:%Y-%m-%d %H:%M} UTC")
    lines.append(f"  {advice(one)}")
    return lines


def advice(one: Condition) -> str:
    """The command that tells more, with a name only if it can be copied without harm."""
    name = one.key.name if _HARMLESS.fullmatch(one.key.name) else ""
    commands = {
        "quarantine": f"polynya quarantine list {name}",
        "stale": f"polynya status {name}",
        "expectation": f"polynya status {name}",
        "capture": f"polynya landing status {one.task or ''}",
        "cluster": "polynya cluster status",
        "deploy": "polynya validate",
    }
    if one.code is not None:
        return f"polynya explain {one.code}"
    return commands.get(one.key.cause, "polynya status").strip()


def _duration(lasted: timedelta) -> str:
    minutes = int(lasted.total_seconds() // 60)
    if minutes < 1:
        return "less than a minute"
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def _as_json(notice: Notice) -> dict[str, Any]:
    one = notice.condition
    return {
        "kind": notice.kind,
        "cause": one.key.cause,
        "severity": one.severity,
        "name": one.key.name,
        "task": one.task,
        "detail": one.key.detail or None,
        "title": one.title,
        "code": one.code,
        "since": one.since.isoformat(),
        "count": one.count or None,
        "seconds": round(one.seconds, 3) or None,
        "advice": advice(one),
    }
