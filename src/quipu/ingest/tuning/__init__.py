"""Tuning: suggests entity types, relations and examples from a sample of documents, as an ontology file to edit."""
