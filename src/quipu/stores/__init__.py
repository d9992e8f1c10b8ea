"""Stores: adapters that keep facts and derivations."""
