"""MiniLM: all-MiniLM-L6-v2 by ONNX Runtime, from weights that are already on this machine."""
