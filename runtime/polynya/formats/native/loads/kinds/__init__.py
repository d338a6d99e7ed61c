"""How files of each native format are cut into pieces, and read portion by portion."""
