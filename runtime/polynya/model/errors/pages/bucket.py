"""Pages of the configuration bucket: pushing, pulling, and what lies there."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-BKT-001",
        "another push came first",
        "Somebody pushed while this push or this reading was under way. The pointer is moved only"
        " if it is as it was read, so that nothing of the losing push is in force; its bundle "
        "lies unused in the bucket. Check the other push with `polynya config diff`, then push "
        "again.",
    ),
    ErrorPage(
        "POLYNYA-BKT-002",
        "a push would lose edits by hand",
        "Files in the bucket were edited by hand, and this folder has neither the edits nor ever "
        "saw them. Nothing was pushed. `polynya config pull` brings the edits home; "
        "`--overwrite-edits` pushes over them.",
    ),
    ErrorPage(
        "POLYNYA-BKT-003",
        "a pull would overwrite local changes",
        "The files named were changed in this folder and in the bucket. Nothing was written. Fix "
        "them by hand with `polynya config diff`, or let `--overwrite-local` take those of the "
        "bucket.",
    ),
    ErrorPage(
        "POLYNYA-BKT-004",
        "the bucket's own objects are damaged",
        "`pushed.json` or the bundle that it names cannot be read, or a bundle's hash is not its "
        "name: something other than Polynya wrote there. Running nodes keep what they read last. "
        "Restore the version before of that object (the bucket keeps old versions), or delete "
        "`pushed.json` and push again with `--overwrite-edits`.",
    ),
    ErrorPage(
        "POLYNYA-BKT-005",
        "not used as configuration",
        "An object below `current/` has a name that no file of a project has, is more than a "
        "project may hold (2,000 files, 32 MB together), or cannot be read; or a project is too "
        "large to be pushed. An object is left out, and all others count.",
    ),
    ErrorPage(
        "POLYNYA-BKT-006",
        "no configuration there",
        "The target names no place with `config`, or nothing was pushed there yet. Set "
        "`targets.NAME.config` to `s3://BUCKET/PREFIX` or a folder, then `polynya config push`.",
    ),
)
