"""The folders of Spark's temporary files: one for each process, none left of those killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from polynya.lake.spark.cache import new_scratch
from polynya.lake.spark.session import SessionSettings, spark_conf

HOLDER = """
import sys, time
from pathlib import Path
from polynya.lake.spark.cache import new_scratch
folder = new_scratch(Path(sys.argv[1]))
(folder / "blockmgr").mkdir()
print(folder, flush=True)
time.sleep(60)
"""


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_stays(tmp_path: Path) -> None:
    foreign = tmp_path / "not-ours"
    foreign.mkdir()
    holders = [
        subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    killed, living = (Path(one.stdout.readline().strip()) for one in holders if one.stdout)
    holders[0].send_signal(signal.SIGKILL)
    holders[0].wait()

    mine = new_scratch(tmp_path)

    assert not killed.exists()
    assert (living / "blockmgr").is_dir()
    assert mine.is_dir()
    assert foreign.is_dir()
    holders[1].kill()
    holders[1].wait()
    again = new_scratch(tmp_path)
    assert {one.name for one in tmp_path.iterdir()} == {mine.name, again.name, foreign.name}


def test_spark_and_the_jvm_write_below_it(tmp_path: Path) -> None:
    conf = spark_conf(SessionSettings(jars=(), catalog={}, scratch=tmp_path))

    assert conf["spark.local.dir"] == str(tmp_path)
    assert f'"-Djava.io.tmpdir={tmp_path}"' in conf["spark.driver.extraJavaOptions"]
