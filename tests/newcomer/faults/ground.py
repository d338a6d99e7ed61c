"""A small project that is put back to the same state, at the same place, before each fault."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.newcomer.faults.judging import named_fixes
from tests.newcomer.shop.feed import TABLES, Feed
from tests.newcomer.shop.project import Shop
from tests.oracle.packs.driver import Printed

#: Records of a first load, and of each file of changes.
_LOADED, _CHANGED = 200, 60
RUN = ("run", "--once")


@dataclass(frozen=True)
class Ground:
    """A project with applied rows, pending changes, and a file for each table not yet read.

    `saved` and `feeds` are its files and what it knows of them, as they were in the beginning.
    """

    shop: Shop
    saved: Path
    feeds: Mapping[str, Feed]

    @classmethod
    def made(cls, home: Path, seed: int) -> Ground:
        """Make it below a folder."""
        shop = Shop.made(home / "machine", seed)
        for table in TABLES:
            shop.land_load(table, _LOADED)
            shop.land_changes(table, _CHANGED)
        shop.polynya.must(*RUN, "--apply", "always")
        for table in TABLES:
            shop.land_changes(table, _CHANGED)
        shop.polynya.must(*RUN, "--apply", "never")
        for table in TABLES:
            shop.land_changes(table, _CHANGED)
        ground = cls(shop, home / "saved", copy.deepcopy(shop.feeds))
        shutil.copytree(shop.folder, ground.saved, symlinks=True)
        return ground

    @property
    def folder(self) -> Path:
        """The project."""
        return self.shop.folder

    @property
    def warehouse(self) -> Path:
        """Its tables."""
        return self.folder / "warehouse"

    @property
    def catalog(self) -> Path:
        """The file of its catalog."""
        return self.warehouse / "catalog.db"

    def restore(self) -> None:
        """Put the project back. Tables know absolute paths, so it is always at the same place."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.saved, self.folder, symlinks=True)
        self.shop.feeds = copy.deepcopy(dict(self.feeds))

    def at(self, name: str) -> Ground:
        """The same project in another folder beside it."""
        return replace(self, shop=self.shop.at(self.folder.with_name(name)))

    def call(
        self,
        *arguments: str,
        within: Sequence[str] = (),
        extra: Mapping[str, str] | None = None,
    ) -> Printed:
        """Run a command in the project."""
        return self.shop.polynya.call(*arguments, within=within, extra=extra)

    def fixed_by(self, printed: Printed, commands: int) -> list[str]:
        """Do what the errors name as their fix; what keeps it from being done.

        `commands` is the least number of commands that they have to name.
        """
        fixes = named_fixes(printed.output + printed.errors)
        found = []
        if len(fixes) < commands:
            found.append(f"the fix names {len(fixes)} commands, {commands} wanted")
        for fix in fixes:
            done = self.call(*fix)
            if done.code != 0:
                said = done.output + done.errors
                found.append(f"polynya {' '.join(fix)}: exit {done.code}\n{said}")
        return found

    def goes_on(self) -> list[str]:
        """What is wrong with the next run, or with the tables after it."""
        done = self.call(*RUN)
        if done.code != 0:
            return [f"the next run: exit {done.code}\n{done.output}{done.errors}"]
        return self.shop.damage()
