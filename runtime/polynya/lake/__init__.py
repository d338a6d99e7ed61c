"""The merge engine on Spark and Iceberg: copy, fold, apply, live views."""
