"""Files and foreign objects as graphs."""
