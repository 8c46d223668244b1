"""What a model is trained for: objectives, and the figures that judge them."""
