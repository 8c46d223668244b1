"""Graphs in, and what can be said of them without a model: readers, distances, curvature, spectra, hops."""
