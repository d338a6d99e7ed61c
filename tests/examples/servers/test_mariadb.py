"""The server that the tests have: its log, and that it outlives a kill."""

from __future__ import annotations

from pathlib import Path

from tests.mariadb import new_server


def test_a_server_has_a_log_of_rows_and_keeps_what_was_committed_before_a_kill(
    tmp_path: Path,
) -> None:
    server = new_server(tmp_path)
    try:
        server.start()
        server.execute("CREATE DATABASE shop", "CREATE TABLE shop.a (id INT PRIMARY KEY)")
        server.execute("INSERT INTO shop.a VALUES (1)")

        server.kill()
        server.start()

        assert server.execute("SELECT id FROM shop.a") == ((1,),)
        said = dict(server.execute("SHOW VARIABLES LIKE '%bin%'"))
        assert (said["log_bin"], said["binlog_format"]) == ("ON", "ROW")
        (position,) = server.execute("SELECT @@gtid_binlog_pos")
        assert position == ("0-1-3",)
    finally:
        server.close()
