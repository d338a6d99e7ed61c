"""Records of native files as columns, where no value has to be looked at by itself."""
