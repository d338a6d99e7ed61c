"""Records as columns, where no value has to be looked at by itself: what several formats share."""
