"""Vectors: nearest-neighbour search behind the `vectors` port."""
