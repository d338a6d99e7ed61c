"""Short ways to look at the public names of a package."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType


def undocumented(package: ModuleType) -> list[str]:
    """Public names that are not there or say nothing of themselves."""
    found = ((name, getattr(package, name, None)) for name in package.__all__)
    return [
        name for name, value in found if not isinstance(value, str) and not inspect.getdoc(value)
    ]


def promised(package: ModuleType) -> set[str]:
    """Names that a type checker sees in the package: those imported `as` themselves."""
    tree = ast.parse(Path(package.__file__ or "").read_text("utf-8"))
    froms = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {one.asname for node in froms for one in node.names if one.asname is not None}


def loads(code: str, packages: Iterable[str]) -> list[str]:
    """Those of the packages that a fresh interpreter has loaded after some code has run."""
    tail = f"print('LOADED', *(name for name in {[*packages]!r} if name in sys.modules))"
    script = f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\n{tail}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "LOADED" in done.stdout, done.stderr
    return done.stdout.rpartition("LOADED")[2].split()
