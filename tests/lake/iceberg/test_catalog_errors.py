"""What a catalog says of a change of columns, as errors that people can act on."""

from __future__ import annotations

import pytest

from polynya.lake.errors import of_change
from polynya.lake.iceberg.layout import grow_columns
from polynya.lake.table.dataset import DatasetTable
from polynya.model.errors import StaleStepError
from polynya.model.types import parse_type
from tests.lab.lab import Lab
from tests.lake.iceberg.test_machine_errors import Refused, Thrown

TEXT = parse_type("string")


@pytest.mark.parametrize(
    ("thrown", "code"),
    [
        (Thrown("CommitFailedException", "the table has moved"), "POLYNYA-LAKE-052"),
        (Thrown("CommitStateUnknownException", "connection reset"), "POLYNYA-LAKE-004"),
        (Thrown("ServiceFailureException", "503"), "POLYNYA-LAKE-062"),
        (Thrown("RuntimeIOException", "No space left on device"), "POLYNYA-DEP-011"),
    ],
)
def test_what_stopped_a_change(thrown: Thrown, code: str) -> None:
    found = of_change("lake.users", Refused(thrown))

    assert found.code == code


def test_of_two_that_change_columns_at_once_the_second_is_told_of_the_first(lab: Lab) -> None:
    users = lab.feed()
    first, second = (DatasetTable.open(lab.spark, users.dataset, name).table for name in "ab")
    grow_columns(lab.spark, first, {}, {"color": TEXT})

    with pytest.raises(StaleStepError) as caught:
        grow_columns(lab.spark, second, {}, {"size": TEXT})

    assert caught.value.code == "POLYNYA-LAKE-052"
    second.refresh()
    assert grow_columns(lab.spark, second, {"color": TEXT}, {"color": TEXT, "size": TEXT})
    assert {"color", "size"} <= second.column_names()
