"""Graphs as arrays: structure that needs no model (adjacency, distances, curvature, spectra, hops)."""
