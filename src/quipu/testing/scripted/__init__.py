"""Scripted models: what a test wants to be answered, how fast and with which faults, without a model."""
