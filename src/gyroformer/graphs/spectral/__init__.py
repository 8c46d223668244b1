"""Eigenvectors of the Laplacian."""
