"""SQLite as a database of the relational store."""
