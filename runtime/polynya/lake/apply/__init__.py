"""Fold pending changes into Current and Prior, in one commit."""
