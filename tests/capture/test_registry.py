"""Which databases can be captured."""

from __future__ import annotations

import pytest

from polynya.capture.source import Access, open_database
from polynya.model.errors import OperationError

ACCESS = Access("foxpro", "127.0.0.1", 1, "shop", "me", "secret", task="shop_db")


def test_a_type_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(OperationError, match="type foxpro cannot be captured") as caught:
        open_database(ACCESS)

    assert caught.value.code == "POLYNYA-GTW-001"
    assert "mariadb, mongodb, mysql, oracle, postgresql" in str(caught.value.fix)


def test_how_a_database_is_reached_is_shown_without_its_password() -> None:
    assert "secret" not in repr(ACCESS)
