"""Which cases of a table are for every push; the others are in `make test-slow`."""

from __future__ import annotations

from typing import Any

import pytest


def slow(*values: Any) -> Any:
    """A case of a parametrized test that shows little beyond its neighbours."""
    return pytest.param(*values, marks=pytest.mark.slow)
