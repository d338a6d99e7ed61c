"""What a test needs and a machine may lack."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def absent(what: str) -> NoReturn:
    """Skip the test, and say what is not there; where CI is set everything has to be: it fails."""
    if "CI" in os.environ:
        pytest.fail(what)
    pytest.skip(f"{what}; where CI is set this is a failure")
