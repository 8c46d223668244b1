"""Graphs in: files and objects of many kinds become one clean ``torch_geometric.data.Data``."""
