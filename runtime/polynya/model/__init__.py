"""The data model: configuration, datasets, types, names and errors.

Pure Python: no pyspark, no pyarrow, no boto3.
"""
