"""The Java of a capture, in its own process: started once, reached through JPype.

A Java cannot be started twice in a process; that, and its memory, is why each capture has one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jpype

from polynya.gateway.source import Offset
from polynya.model.errors import DependencyError


def start_java(jars: Sequence[str], java_home: str | None, heap_mb: int) -> None:
    """Start it, if it does not run yet.

    Args:
        jars: the class path.
        java_home: folder of the Java; None: JAVA_HOME, or what JPype finds.
        heap_mb: its memory for objects, in MB.

    Raises:
        DependencyError: POLYNYA-GTW-005, it does not start.
    """
    if jpype.isJVMStarted():
        return
    if java_home:
        os.environ["JAVA_HOME"] = java_home
    options = [f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError"]
    try:
        # Signals stay Python's: it has to end cleanly when it is asked to.
        jpype.startJVM("-Xrs", *options, classpath=list(jars), convertStrings=False)
    except (OSError, RuntimeError, ValueError) as error:
        raise DependencyError(
            "POLYNYA-GTW-005",
            f"the Java of the capture does not start: {error}",
            where=java_home,
            state="nothing was captured since the newest batch; the database keeps its changes",
            fix="set JAVA_HOME to a Java 17 or 21 whose memory this machine has",
        ) from None


def write_offset(path: Path, name: str, offset: Offset) -> None:
    """Write an offset as the file from which the engine begins.

    Args:
        path: the file.
        name: of the engine, and of the server in its offsets.
        offset: as the connector has it.
    """
    # Connect's own writing of JSON, by which the key is compared.
    key = f'["{name}",{{"server":"{name}"}}]'
    entries = jpype.JClass("java.util.HashMap")()
    entries.put(_bytes(key), _bytes(offset_text(offset)))
    out = jpype.JClass("java.io.FileOutputStream")(str(path))
    stream = jpype.JClass("java.io.ObjectOutputStream")(out)
    try:
        stream.writeObject(entries)
    finally:
        stream.close()


def offset_text(offset: Offset) -> str:
    """An offset as the JSON that Connect reads."""
    return json.dumps(dict(offset), separators=(",", ":"))


def python_offset(found: Any) -> dict[str, Any]:
    """An offset out of Java: texts, numbers, truth values and nothing else."""
    return {str(entry.getKey()): _plain(entry.getValue()) for entry in found.entrySet()}


def _plain(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, jpype.JClass("java.lang.Boolean")):
        return bool(value)
    if isinstance(value, (jpype.JClass("java.lang.Float"), jpype.JClass("java.lang.Double"))):
        return float(value)
    if isinstance(value, jpype.JClass("java.lang.Number")):
        return int(value)
    if isinstance(value, jpype.JClass("java.util.Map")):
        return python_offset(value)
    return str(value)


def java_properties(settings: Mapping[str, str]) -> Any:
    """Settings as Java's Properties."""
    properties = jpype.JClass("java.util.Properties")()
    for name, value in settings.items():
        properties.setProperty(name, value)
    return properties


def _bytes(text: str) -> Any:
    return jpype.JArray(jpype.JByte)(text.encode())
