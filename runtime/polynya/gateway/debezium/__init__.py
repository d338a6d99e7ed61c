"""Debezium's engine inside of this process: its settings, its Java, its records."""
