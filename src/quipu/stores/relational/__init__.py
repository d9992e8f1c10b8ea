"""The relational store: one schema and one set of queries on SQLAlchemy Core."""
