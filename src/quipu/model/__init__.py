"""The data model: frozen dataclasses without I/O, used by every other layer."""
