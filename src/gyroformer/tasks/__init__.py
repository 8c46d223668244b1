"""What a model is trained for: a loss, the figures by which it is judged, and what selects the best state."""
