"""From the files of a project to checked configuration, every value with its place."""
