"""What lies in a configuration bucket, and what of it counts. Pure: files are values here.

- `pushed.json`, the pointer: which bundle was pushed last, and by whom
- `bundles/<revision>.json`: all files of one push, never changed; its SHA-256 is its name
- `current/…`: the same files, for people to look at and to edit
"""
