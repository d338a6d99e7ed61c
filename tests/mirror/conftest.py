"""The corner of the shared warehouse that tests of tables have."""

from tests.lake.conftest import lab

__all__ = ["lab"]
