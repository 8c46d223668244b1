"""The pictures of the documentation, one function each."""
