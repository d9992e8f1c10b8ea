"""Topology: the graph of a store as compressed sparse arrays, in memory and in mapped files (see ports.topology)."""

from quipu.topology.index import LocalTopologyIndex

__all__ = ["LocalTopologyIndex"]
