"""May this principal do this? The part of AWS's policy evaluation that the templates use.

Source of the algorithm: IAM User Guide, "Policy evaluation logic" (no service control policy, no
session policy) and "IAM JSON policy elements". Whatever is not known here (an element, a
condition operator, a policy variable) is an error and not a guess: a statement that is passed over
would prove nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

_ELEMENTS = {
    "Sid", "Effect", "Principal", "Action", "NotAction", "Resource", "NotResource", "Condition",
}  # fmt: skip
# With one value in the request, any of its values is that one.
_ANY = "ForAnyValue:"
# The one policy variable that templates use, in conditions only.
_CALLER = "${aws:userid}"


class UnknownElementError(AssertionError):
    """Raised for a part of a policy that this evaluator does not know."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: a role by its ARN with its policies, or a service of AWS by its name.

    `boundary` is the permissions boundary; None when there is none.
    """

    name: str
    account: str
    policies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    boundary: Mapping[str, Any] | None = None

    @property
    def is_service(self) -> bool:
        return not self.name.startswith("arn:")


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked: an action on a resource; `context` holds condition keys, as written."""

    action: str
    resource: str
    context: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer, and the statement that it comes from."""

    allowed: bool
    reason: str


def evaluate(
    who: Principal,
    request: Request,
    *,
    account: str,
    resource_policy: Mapping[str, Any] | None = None,
    resource_decides: bool = False,
) -> Verdict:
    """Judge a request.

    Args:
        who: the principal, with its identity policies.
        request: the question.
        account: that of the resource. Of a principal of another one, both have to allow it.
        resource_policy: the policy document of the resource, if it has one.
        resource_decides: nobody gets in whom that policy does not name or delegates to the
            account: KMS keys, and roles that are assumed.
    """
    resource_statements = _statements({"resource policy": resource_policy or {"Statement": []}})
    boundary = _statements({"boundary": who.boundary} if who.boundary else {})
    identity = _statements(who.policies)
    for place, statement in (*identity, *boundary, *resource_statements):
        if statement["Effect"] == "Deny" and _applies(statement, who, request):
            return Verdict(False, f"denied by {place}")
    if who.boundary is not None and not _allowing(boundary, who, request):
        return Verdict(False, "outside the boundary")  # what a resource grants to a role, too
    by_policy = _allowing(identity, who, request)
    by_resource = _allowing(resource_statements, who, request)
    delegated = _allowing(resource_statements, who, request, root=True)
    if by_resource and (who.is_service or who.account == account or by_policy):
        return Verdict(True, f"allowed by {by_resource}")
    if by_policy and who.account == account and (delegated or not resource_decides):
        return Verdict(True, f"allowed by {by_policy}")
    return Verdict(False, "allowed by nothing")


def _statements(
    policies: Mapping[str, Mapping[str, Any]],
) -> list[tuple[str, Mapping[str, Any]]]:
    found = []
    for name, document in policies.items():
        for number, statement in enumerate(document["Statement"]):
            if unknown := set(statement) - _ELEMENTS:
                raise UnknownElementError(f"{name}: {sorted(unknown)} is not known")
            if statement["Effect"] not in {"Allow", "Deny"}:
                raise UnknownElementError(f"{name}: effect {statement['Effect']}")
            for operator in statement.get("Condition", {}):
                if operator != "Null" and operator.removeprefix(_ANY) not in _OPERATORS:
                    raise UnknownElementError(f"{name}: condition operator {operator}")
            found.append((f"{name}, {statement.get('Sid', number)}", statement))
    return found


def _allowing(
    statements: Iterable[tuple[str, Mapping[str, Any]]],
    who: Principal,
    request: Request,
    *,
    root: bool = False,
) -> str | None:
    for place, statement in statements:
        if statement["Effect"] == "Allow" and _applies(statement, who, request, root=root):
            return place
    return None


def _applies(
    statement: Mapping[str, Any], who: Principal, request: Request, *, root: bool = False
) -> bool:
    return (
        _principal_matches(statement, who, root=root)
        and _matches(statement, "Action", request.action.lower(), lambda text: glob(text.lower()))
        and _matches(statement, "Resource", request.resource, arn_glob)
        and all(
            _holds(operator, key, listed(wanted), request.context)
            for operator, keys in statement.get("Condition", {}).items()
            for key, wanted in keys.items()
        )
    )


def _principal_matches(statement: Mapping[str, Any], who: Principal, *, root: bool) -> bool:
    """An identity policy names nobody. The account's root in an Allow only delegates to IAM."""
    if "Principal" not in statement:
        return True
    principal = statement["Principal"]
    account = f"arn:aws:iam::{who.account}:root"
    if principal == "*":
        return True
    for kind, names in principal.items():
        if kind == "Service":
            if who.name in listed(names):
                return True
        elif kind == "AWS":
            named = listed(names)
            if "*" in named or who.name in named:
                return True
            delegates = root or statement["Effect"] == "Deny"
            if delegates and not who.is_service and {account, who.account} & set(named):
                return True
        else:
            raise UnknownElementError(f"principal {kind} is not known")
    return False


def _matches(
    statement: Mapping[str, Any],
    element: str,
    value: str,
    pattern: Callable[[str], re.Pattern[str]],
) -> bool:
    negated = f"Not{element}"
    if negated in statement:
        return not any(pattern(text).fullmatch(value) for text in listed(statement[negated]))
    if element not in statement:  # the trust policy of a role is about the role
        return "Principal" in statement
    return any(pattern(text).fullmatch(value) for text in listed(statement[element]))


def _holds(operator: str, key: str, wanted: Sequence[str], context: Mapping[str, str]) -> bool:
    present = {name.lower(): value for name, value in context.items()}.get(key.lower())
    if operator == "Null":
        return any((present is None) == (text.lower() == "true") for text in wanted)
    if present is None:
        return False
    filled = (text.replace(_CALLER, _caller(context)) for text in wanted)
    return any(_OPERATORS[operator.removeprefix(_ANY)](text, present) for text in filled)


def _caller(context: Mapping[str, str]) -> str:
    """The caller's id; without one, a text that no value of a request is."""
    return context.get("aws:userid", "\0")


@cache
def glob(text: str) -> re.Pattern[str]:
    """A pattern with `*` and `?`."""
    return re.compile(_regex(text), re.DOTALL)


@cache
def arn_glob(text: str) -> re.Pattern[str]:
    """The same for ARNs: a wildcard reaches over no colon but in the last part."""
    if text == "*":
        return re.compile(".*", re.DOTALL)
    *head, last = text.split(":", 5)
    parts = [_regex(part).replace(".*", "[^:]*") for part in head]
    return re.compile(":".join([*parts, _regex(last)]), re.DOTALL)


def _regex(text: str) -> str:
    return re.escape(_plain(text)).replace(r"\*", ".*").replace(r"\?", ".")


def _plain(text: str) -> str:
    if "${" in text:
        raise UnknownElementError(f"policy variable in {text}")
    return text


# Of each: the policy's text, the request's value. Operators with Not or IfExists hold where the key
# is missing; they come in here together with that rule when a template uses one.
_OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda text, value: _plain(text) == value,
    "StringLike": lambda text, value: bool(glob(text).fullmatch(value)),
    "ArnEquals": lambda text, value: bool(arn_glob(text).fullmatch(value)),
    "ArnLike": lambda text, value: bool(arn_glob(text).fullmatch(value)),
    "Bool": lambda text, value: _plain(text).lower() == value.lower(),
}


def listed(value: Any) -> list[Any]:
    """The values of an element that may be one or a list."""
    return value if isinstance(value, list) else [value]
