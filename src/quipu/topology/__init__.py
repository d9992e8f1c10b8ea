"""Topologies: the graph of a store as compressed arrays, in memory and in mapped files; see ports.topology."""

from quipu.topology.local import LocalTopologies

__all__ = ["LocalTopologies"]
