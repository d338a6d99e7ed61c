"""The bank in MariaDB."""
