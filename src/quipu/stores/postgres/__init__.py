"""The relational store on PostgreSQL."""
