"""The page of one error code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """What a code means: when it is raised, and what helps."""

    code: str
    title: str
    text: str
