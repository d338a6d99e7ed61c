"""One dataset's internal table in the hands of its owner: state, growth, guards, accounting."""
