"""Data sets by name, their checked download, and splits that say what they are."""
