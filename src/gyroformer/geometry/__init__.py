"""Pure functions of the stereographic model."""
