"""Tuning: how documents should be read is worked out from a sample of them, and written into a file users edit."""
