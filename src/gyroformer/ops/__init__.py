"""Fast tensor functions in tangent and lifted coordinates, beside their slow, obvious twins."""
