"""The corner of the shared warehouse that a life takes place in."""

from tests.lake.conftest import lab

__all__ = ["lab"]
