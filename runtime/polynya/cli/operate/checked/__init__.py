"""What `polynya doctor` checks of parts that not every project has."""
