"""A real browser for tests: headless Chromium of package-lock.json, driven by Playwright."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cramjam
from playwright.sync_api import Browser, sync_playwright

from tests.absent import absent

_ROOT = Path(__file__).parents[1]
_PACKAGE = _ROOT / "node_modules/@sparticuz/chromium"
#: Tests run as root in CI, where Chromium has no sandbox; it opens pages of this machine only.
_OPTIONS = (
    "--no-sandbox",
    "--no-zygote",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def unpacked() -> Path:
    """The folder of Chromium and of its libraries, unpacked by the first test that asks."""
    if not (_PACKAGE / "package.json").is_file():
        absent("Chromium is not installed: `npm ci`")
    version = json.loads((_PACKAGE / "package.json").read_text())["version"]
    folder = _ROOT / "build" / f"chromium-{version}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix="chromium-", dir=folder.parent))
    program = made / "chromium"
    program.write_bytes(_brotli(_PACKAGE / "bin/chromium.br"))
    program.chmod(0o755)
    with tarfile.open(fileobj=io.BytesIO(_brotli(_PACKAGE / "bin/al2023.tar.br"))) as archive:
        archive.extractall(made, filter="data")
    try:
        made.rename(folder)
    except OSError:
        # Another test process was faster.
        shutil.rmtree(made)
    return folder


def _brotli(path: Path) -> bytes:
    return bytes(cramjam.brotli.decompress(path.read_bytes()))


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser without pages."""
    folder = unpacked()
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder / "lib")}
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=folder / "chromium", args=list(_OPTIONS), env=environment
        )
        try:
            yield started
        finally:
            started.close()
