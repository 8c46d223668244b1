"""The search for settings: the space, the study that several processes share, and the recipe it ends in."""
