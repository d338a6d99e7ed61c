"""Landed batches of streams: messages as they came, whatever reads them."""
