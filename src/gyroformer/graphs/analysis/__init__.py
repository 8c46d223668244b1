"""What a graph measures: curvature, distances, triangles."""
