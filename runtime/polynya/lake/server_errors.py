"""Errors of a catalog's database server, as Java or Python reports them."""

from __future__ import annotations

from polynya.model.errors import DependencyError


def unreachable(where: str | None, why: str) -> DependencyError:
    """The error for a catalog that does not answer."""
    return DependencyError(
        "POLYNYA-DEP-015",
        "the database of the catalog does not answer",
        where=where,
        why=why,
        state="as after the last completed commit; every commit is atomic",
        fix="look whether the server runs and has that database, and `catalog.uri` of the target",
    )


def refused(where: str | None, why: str) -> DependencyError:
    """The error for a catalog that lets nobody in."""
    return DependencyError(
        "POLYNYA-DEP-016",
        "the database of the catalog refuses the login",
        where=where,
        why=why,
        state="nothing was started; the tables are as they were",
        fix="look at `catalog.user` and `catalog.password` of the target, and whether that user "
        "may create and write tables there",
    )
