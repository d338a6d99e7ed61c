"""File formats as records: bytes in, one record at a time out. Nothing about datasets."""
