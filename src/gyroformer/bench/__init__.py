"""Measurements: speed and memory beside the flat twin, and training under stress."""
