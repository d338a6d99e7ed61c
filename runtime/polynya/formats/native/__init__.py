"""Files of records without change metadata: the configuration says what an event is."""
