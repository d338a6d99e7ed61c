"""Large full loads of native files, read in tasks: columns stay columns."""
