"""The frozen table of roles and actions, and the decision whether a person may do something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from polynya.model.config.access import AccessDocument, Role
from polynya.server.access.actions import Action

#: How a person was recognised; `local`: by reaching a server without `access.yml` on loopback.
Proof: TypeAlias = Literal["local", "session", "token", "bearer", "aws", "none"]

_SELF: Final = frozenset(
    {Action.LOG_IN, Action.CALL_WEBHOOK, Action.OWN_TOKENS, Action.VIEW_PROJECT}
)
_VIEW: Final = _SELF | {
    Action.VIEW_METRICS,
    Action.VIEW_LINEAGE,
    Action.VIEW_DOCUMENTS,
    Action.VIEW_CLUSTER,
    Action.VIEW_OPERATIONS,
    Action.VIEW_AUTOMATIONS,
    Action.VIEW_NOTIFICATIONS,
}
_PREPARE: Final = frozenset({Action.VALIDATE, Action.PLAN})
_READ: Final = frozenset({Action.READ_CATALOG, Action.QUERY_DATA})
_EDIT: Final = _VIEW | _PREPARE | {Action.EDIT_DOCUMENTS, Action.TEST_NOTIFICATION}
_OPERATE: Final = (
    _VIEW
    | _PREPARE
    | {
        Action.RUN,
        Action.STOP,
        Action.RESUME,
        Action.MAINTAIN,
        Action.REPLAY_QUARANTINE,
        Action.OPERATE_CLUSTER,
        Action.CANCEL_OPERATION,
        Action.RUN_AUTOMATION,
        Action.PAUSE_AUTOMATION,
        Action.CALL_AUTOMATION,
        Action.TEST_NOTIFICATION,
    }
)
_MANAGE: Final = (
    _EDIT
    | _OPERATE
    | _READ
    | {
        Action.MIGRATE,
        Action.APPROVE_PLAN,
        Action.RELOAD,
        Action.RECREATE,
        Action.VIEW_QUARANTINE,
        Action.VIEW_ACCESS,
        Action.VIEW_AUDIT,
    }
)

#: What each role may do. An action that stands in none of the sets is for owners.
TABLE: Final[Mapping[Role, frozenset[Action]]] = MappingProxyType(
    {
        Role.OWNER: frozenset(Action),
        Role.CAN_MANAGE: frozenset(_MANAGE),
        Role.CAN_OPERATE: frozenset(_OPERATE),
        Role.CAN_EDIT: frozenset(_EDIT),
        Role.CAN_CONSUME: _SELF | _READ | {Action.VIEW_LINEAGE, Action.VIEW_CLUSTER},
        Role.CAN_VIEW: frozenset(_VIEW),
        Role.DATA_ADMIN: _VIEW
        | {Action.OPERATE_CLUSTER, Action.VIEW_ACCESS, Action.VIEW_AUDIT, Action.CANCEL_OPERATION},
        Role.DATA_PRODUCT_MANAGER: _VIEW | _PREPARE | _READ,
        Role.PROJECT_CREATOR: _SELF | _PREPARE | {Action.VIEW_DOCUMENTS, Action.VIEW_LINEAGE},
        Role.CONTRIBUTOR: _SELF,
    }
)
#: What may be done without a person: routes that begin a login, or check a signature themselves.
OPEN: Final = frozenset({Action.LOG_IN, Action.CALL_WEBHOOK})
#: Roles that read every view without a grant.
READS_ALL: Final = frozenset({Role.OWNER, Role.CAN_MANAGE})


@dataclass(frozen=True, slots=True)
class Person:
    """The person or program of a request.

    Attributes:
        name: as shown and logged: the mail address, or `oidc:`, `aws:` and so on.
        subjects: names under which `access.yml` may list them, groups included.
        proof: how they were recognised.
        scope: the only actions that may be done, None for all that the roles allow.
        session: the key of the session or the token, "" for others.
    """

    name: str
    subjects: frozenset[str] = frozenset()
    proof: Proof = "none"
    scope: frozenset[Action] | None = None
    session: str = field(default="", repr=False)


#: The person at a server without `access.yml`, which listens on loopback only.
LOCAL: Final = Person("local", frozenset(), "local")
NOBODY: Final = Person("anonymous")


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """Whether a person may do something, and why."""

    allowed: bool
    reason: str
    role: Role | None = None


def roles_of(person: Person, document: AccessDocument) -> tuple[Role, ...]:
    """The roles of a person, the strongest of the project first."""
    return tuple(role for role in Role if not person.subjects.isdisjoint(document.roles.of(role)))


def decide(person: Person, action: Action, document: AccessDocument | None) -> AccessDecision:
    """Whether a person may do an action in a project with this access document."""
    if action in OPEN:
        return AccessDecision(allowed=True, reason="everybody may")
    if person.proof == "none":
        return AccessDecision(allowed=False, reason="nobody is logged in")
    if document is None:
        local = person.proof == "local"
        return AccessDecision(
            allowed=local, reason="this machine may" if local else "the project has no access.yml"
        )
    if person.proof == "local":
        return AccessDecision(
            allowed=False, reason="the project has an access.yml, which asks for a login"
        )
    if person.scope is not None and action not in person.scope:
        return AccessDecision(allowed=False, reason="the token was not made for it")
    roles = roles_of(person, document)
    for role in roles:
        if action in TABLE[role]:
            return AccessDecision(allowed=True, reason=f"{role.value} may", role=role)
    names = " and ".join(role.value for role in roles)
    return AccessDecision(
        allowed=False, reason=f"{names} may not" if roles else "the person has no role"
    )


def actions_of(subjects: Iterable[str], document: AccessDocument) -> frozenset[Action]:
    """Everything that these subjects together may do."""
    person = Person("", frozenset(subjects), "session")
    return frozenset(action for role in roles_of(person, document) for action in TABLE[role])


def refused_change(
    person: Person, before: AccessDocument | None, after: AccessDocument
) -> str | None:
    """Why a person may not replace one access document by another, None if they may.

    An owner remains in each document that can be read: the model asks for one.
    """
    if before is None:
        return None if person.proof == "local" else "the project has none yet"
    if not (decision := decide(person, Action.MANAGE_ACCESS, before)).allowed:
        return decision.reason
    if actions_of(person.subjects, after) - actions_of(person.subjects, before):
        return "it would give you more than you may do now"
    return None


def table_markdown() -> str:
    """The table as Markdown: a line for each action, a column for each role."""
    roles = list(Role)
    lines = [
        "| action | " + " | ".join(role.value.replace("_", " ") for role in roles) + " |",
        "|---|" + "---|" * len(roles),
    ]
    for action in Action:
        if action in OPEN:
            continue
        marks = ("yes" if action in TABLE[role] else "" for role in roles)
        lines.append(f"| `{action.value}` | " + " | ".join(marks) + " |")
    return "\n".join(lines) + "\n"
