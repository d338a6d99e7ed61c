"""Roles: the frozen table, decisions with their reasons, changes of the access file."""

from __future__ import annotations

import pytest

from polynya.model.config.access import Role
from polynya.server.access.actions import Action
from polynya.server.access.roles import LOCAL, NOBODY, TABLE, Person, decide, refused_change
from tests.docs.pages import ROOT
from tests.server.access.served import ROLES, document_of

DOCUMENT = document_of()


def person(*subjects: str, scope: frozenset[Action] | None = None) -> Person:
    return Person(subjects[0], frozenset(subjects), "session", scope)


def test_the_table_on_the_page_is_the_one_in_the_code():
    from polynya.server.access.roles import table_markdown

    assert table_markdown() in (ROOT / "docs" / "access.md").read_text("utf-8")


def test_each_action_is_allowed_to_owners_and_only_owners_change_access():
    assert TABLE[Role.OWNER] == set(Action)
    assert [role for role in Role if Action.MANAGE_ACCESS in TABLE[role]] == [Role.OWNER]


def test_reading_data_is_for_those_who_consume_or_manage():
    readers = {role for role in Role if Action.QUERY_DATA in TABLE[role]}

    assert readers == {
        Role.OWNER, Role.CAN_MANAGE, Role.CAN_CONSUME, Role.DATA_PRODUCT_MANAGER
    }  # fmt: skip


@pytest.mark.parametrize(
    ("who", "action", "allowed", "reason"),
    [
        (person("vera@example.com"), Action.VIEW_PROJECT, True, "can_view may"),
        (person("vera@example.com"), Action.RUN, False, "can_view may not"),
        (person("eve@example.com"), Action.VIEW_PROJECT, False, "the person has no role"),
        (person("x@example.com", "group:analysts"), Action.QUERY_DATA, True, "can_consume may"),
        (
            person("ann@example.com", scope=frozenset({Action.PLAN})),
            Action.RUN,
            False,
            "the token was not made for it",
        ),
        (
            person("vera@example.com", scope=frozenset(Action)),
            Action.RUN,
            False,
            "can_view may not",
        ),
        (NOBODY, Action.VIEW_PROJECT, False, "nobody is logged in"),
        (NOBODY, Action.LOG_IN, True, "everybody may"),
        (LOCAL, Action.RUN, False, "the project has an access.yml, which asks for a login"),
    ],
)
def test_a_decision_has_its_reason(who: Person, action: Action, allowed: bool, reason: str):
    found = decide(who, action, DOCUMENT)

    assert (found.allowed, found.reason) == (allowed, reason)


def test_without_an_access_file_this_machine_may_do_everything_and_a_token_nothing():
    assert all(decide(LOCAL, action, None).allowed for action in Action)
    assert not decide(person("ann@example.com"), Action.VIEW_PROJECT, None).allowed


def test_only_an_owner_changes_the_file():
    after = document_of(ROLES.replace("vera@", "vera@example.com, max@"))

    assert refused_change(person("ann@example.com"), DOCUMENT, after) is None
    for name in ("max@example.com", "eva@example.com", "vera@example.com", "eve@example.com"):
        assert refused_change(person(name), DOCUMENT, after) is not None


def test_nobody_raises_themselves_not_even_by_a_hole_in_the_table(monkeypatch: pytest.MonkeyPatch):
    """A planted fault: a role that may change the file although it may not run."""
    table = {**TABLE, Role.CAN_VIEW: TABLE[Role.CAN_VIEW] | {Action.MANAGE_ACCESS}}
    monkeypatch.setattr("polynya.server.access.roles.TABLE", table)
    after = document_of(ROLES.replace("[ann@example.com]", "[ann@example.com, vera@example.com]"))

    found = refused_change(person("vera@example.com"), DOCUMENT, after)

    assert found == "it would give you more than you may do now"


def test_an_identity_token_cannot_be_the_token_of_a_program():
    oidc = "oidc: {issuer: 'https://x.de', client_id: p, audience: p}\nurl: https://x.de\n"

    with pytest.raises(ValueError, match="identity tokens"):
        document_of(oidc + ROLES)


def test_an_owner_remains():
    with pytest.raises(ValueError, match="at least 1"):
        document_of(ROLES.replace("[ann@example.com]", "[]"))
