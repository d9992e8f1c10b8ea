"""Strings in, strings out: names, words, sentences."""
