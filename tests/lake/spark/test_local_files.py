"""Hadoop makes local files without a process for each, with the permissions that it always gave."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

from polynya.lake.spark.api import SparkSession


def local_files(spark: SparkSession) -> Any:
    """Hadoop's file system of this machine, which all of the JVM shares."""
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext
    return jvm.org.apache.hadoop.fs.FileSystem.getLocal(context._jsc.hadoopConfiguration())


def test_files_and_folders_have_the_permissions_that_are_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    local, jvm = local_files(spark), spark._jvm
    hadoop: Any = jvm.org.apache.hadoop.fs  # type: ignore[union-attr]

    local.create(hadoop.Path(f"{tmp_path}/new/file"), True).close()
    for mode in ("640", "1777"):
        asked = hadoop.permission.FsPermission(mode)
        local.setPermission(hadoop.Path(f"{tmp_path}/new"), asked)
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == int(mode, 8)

    (tmp_path / "new").chmod(0o755)
    assert stat.S_IMODE((tmp_path / "new" / "file").stat().st_mode) == 0o644
    assert [one.name for one in (tmp_path / "new").iterdir()] == ["file"]


def test_no_process_sets_them(spark: SparkSession) -> None:
    assert local_files(spark).getRawFileSystem().getClass().getName() == "FilesWithoutChmod"
