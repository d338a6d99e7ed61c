"""The evaluator against the rules of IAM's user guide, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stacks.iam.iam_evaluator import Principal, Request, UnknownElementError, evaluate

ACCOUNT = "123456789012"
BUCKET = "arn:aws:s3:::lake"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/node"
ROOT = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}


def allow(action: str = "s3:GetObject", on: str = f"{BUCKET}/*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": on} | more


def deny(**more: Any) -> dict[str, Any]:
    return allow() | {"Effect": "Deny"} | more


def asked(
    *identity: dict[str, Any],
    action: str = "s3:GetObject",
    on: str = f"{BUCKET}/a",
    boundary: dict[str, Any] | None = None,
    bucket: dict[str, Any] | None = None,
    who: str = ROLE,
    account: str = ACCOUNT,
    decides: bool = False,
    **context: str,
) -> bool:
    """Whether a role with these statements may; keys of the context are `aws:` and the name."""
    principal = Principal(
        who,
        account,
        {"identity": {"Statement": list(identity)}},
        {"Statement": [boundary]} if boundary else None,
    )
    request = Request(action, on, {f"aws:{key}": value for key, value in context.items()})
    policy = {"Statement": [bucket]} if bucket else None
    return evaluate(
        principal, request, account=ACCOUNT, resource_policy=policy, resource_decides=decides
    ).allowed


def when(operator: str, key: str, value: Any) -> dict[str, Any]:
    return {"Condition": {operator: {key: value}}}


def test_nothing_is_allowed_by_default_and_a_denial_wins() -> None:
    assert not asked()
    assert asked(allow())
    assert not asked(allow(), deny())
    assert not asked(allow(), bucket=deny(Principal="*"))


def test_names_are_matched_with_wildcards_and_actions_in_any_case() -> None:
    assert asked(allow("S3:get*"))
    assert asked(allow("s3:Get?bject"))
    assert not asked(allow("s3:Put*"))
    assert not asked(allow(on="arn:aws:s3:::LAKE/*"))
    assert asked(allow(on="*"))
    # A wildcard reaches over slashes and over the colons of the last part, not over others.
    assert asked(allow("sqs:Send", "arn:aws:sqs:*:*:q"), action="sqs:Send", on="arn:aws:sqs:r:1:q")
    assert not asked(allow("sqs:Send", "arn:aws:*:q"), action="sqs:Send", on="arn:aws:sqs:r:1:q")
    assert not asked(allow(on="arn:aws:s3:::lake"))


def test_not_action_and_not_resource_mean_all_others() -> None:
    others = {"Effect": "Allow", "NotAction": "s3:Delete*", "Resource": "*"}
    assert asked(others)
    assert not asked(others, action="s3:DeleteObject")
    elsewhere = {"Effect": "Deny", "Action": "*", "NotResource": f"{BUCKET}/*"}
    assert asked(allow(on="*"), elsewhere)
    assert not asked(allow(on="*"), elsewhere, on="arn:aws:s3:::other/a")


@pytest.mark.parametrize(
    ("operator", "wanted", "holds", "fails"),
    [
        ("StringEquals", "a", "a", "A"),
        ("StringEquals", ["a", "b"], "b", "c"),
        ("StringEquals", "a*", "a*", "ab"),
        ("StringLike", "a*", "ab", "b"),
        ("ArnLike", "arn:aws:s3:::l*", BUCKET, "arn:aws:s3:::other"),
        ("Bool", "false", "False", "true"),
        ("ForAnyValue:StringEquals", ["a"], "a", "b"),
    ],
)
def test_each_condition_operator(operator: str, wanted: Any, holds: str, fails: str) -> None:
    guarded = allow(**when(operator, "aws:Key", wanted))

    assert asked(guarded, key=holds)
    assert not asked(guarded, key=fails)
    assert not asked(guarded)


def test_a_condition_may_ask_for_the_caller_itself() -> None:
    own = allow(**when("StringEquals", "aws:Owner", "${aws:userid}"))

    assert asked(own, Owner="AROA1:node", userid="AROA1:node")
    assert not asked(own, Owner="AROA2:node", userid="AROA1:node")
    assert not asked(own, Owner="AROA2:node")


def test_null_asks_for_presence_and_all_conditions_have_to_hold() -> None:
    blind = deny(**when("Null", "aws:Match", "true"))
    assert not asked(allow(), blind)
    assert asked(allow(), blind, match="etag")
    both = allow(Condition={"Bool": {"aws:A": "true"}, "StringEquals": {"aws:B": "x"}})
    assert asked(both, a="true", b="x")
    assert not asked(both, a="true", b="y")


def test_a_boundary_only_narrows() -> None:
    assert not asked(boundary=allow())
    assert asked(allow(), boundary=allow())
    assert not asked(allow(), boundary=allow("s3:PutObject"))
    assert not asked(allow(), boundary=deny())
    assert not asked(bucket=allow(Principal={"AWS": ROLE}), boundary=allow("s3:PutObject"))


def test_who_is_named_by_a_resource_gets_in_and_its_account_only_delegates() -> None:
    assert asked(bucket=allow(Principal={"AWS": ROLE}))
    assert not asked(bucket=allow(Principal=ROOT), decides=True)
    assert asked(allow(), bucket=allow(Principal=ROOT), decides=True)
    assert not asked(allow(), decides=True)
    service = {"Service": "logging.s3.amazonaws.com"}
    assert asked(who="logging.s3.amazonaws.com", bucket=allow(Principal=service))
    assert not asked(who="events.amazonaws.com", bucket=allow(Principal=service))


def test_of_another_account_both_sides_have_to_allow() -> None:
    stranger = {"who": "arn:aws:iam::999:role/r", "account": "999"}
    assert not asked(allow(), **stranger)
    assert not asked(bucket=allow(Principal="*"), **stranger)
    assert asked(allow(), bucket=allow(Principal="*"), **stranger)
    assert not asked(allow(), bucket=allow(Principal=ROOT), **stranger)


@pytest.mark.parametrize(
    "statement",
    [
        allow(**when("NumericLessThan", "aws:Age", "3")),
        allow(**when("StringNotEquals", "aws:Key", "a")),
        allow(on="arn:aws:s3:::lake/${aws:username}/*"),
        allow(NotPrincipal="*"),
        allow(Principal={"Federated": "idp"}),
        {"Effect": "Permit", "Action": "*", "Resource": "*"},
    ],
)
def test_what_is_not_known_is_an_error(statement: dict[str, Any]) -> None:
    with pytest.raises(UnknownElementError):
        asked(statement, key="b", age="2")
