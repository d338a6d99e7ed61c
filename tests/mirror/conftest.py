"""What tests of mirrors share."""

from __future__ import annotations

import pytest

from polynya.query.dialects import views_in


@pytest.fixture(scope="package")
def translated_once():
    """The views of each shape are translated once, for tests to which their text is the same."""
    known = {}

    def views(dialect, dataset, shape, table):
        key = (dataset.relations.current, tuple(shape.columns), table)
        if key not in known:
            known[key] = views_in(dialect, dataset, shape, table)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polynya.mirror.plan.views_in", views)
        yield
