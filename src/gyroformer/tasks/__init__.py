"""What models are trained for: a loss, an evaluation, and the order that selects the best state."""
