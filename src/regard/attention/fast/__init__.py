"""Faster ways to the answer of `core`, and the one table that picks among them."""
