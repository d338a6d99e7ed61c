"""One check of `polynya doctor`: its outcome in a line, and its exit code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from polynya.cli.context import CommandContext
from polynya.cli.exit_codes import ExitCode
from polynya.model.errors import PolynyaError

Status: TypeAlias = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check; `exit_code` counts when it failed."""

    name: str
    status: Status
    detail: str
    fix: str | None = None
    exit_code: int = ExitCode.DEPENDENCY


def guarded(name: str, check: Callable[[], Check]) -> Check:
    """The outcome of a check, also when it raises."""
    try:
        return check()
    except PolynyaError as error:
        place = f" ({error.where})" if error.where else ""
        why = f" ({error.why})" if error.why else ""
        return Check(name, "fail", f"{error.message}{place}{why}", error.fix, error.exit_code)


_STYLES: Final[dict[Status, str]] = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def say_check(context: CommandContext, check: Check) -> None:
    """Report a check: a line, with the fix below it unless all is well."""
    from rich.text import Text

    line = Text.assemble(
        (f"{check.status:5}", _STYLES[check.status]), f"{check.name:18} {check.detail}"
    )
    if check.fix and check.status != "ok":
        line.append(f"\n{'':5}fix: {check.fix}")
    data = {"name": check.name, "status": check.status, "detail": check.detail, "fix": check.fix}
    context.output.result("check", data, line)
