"""What ``gyroformer demo`` shows, on data that every machine has."""
