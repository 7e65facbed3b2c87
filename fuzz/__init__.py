"""Generated problems, each with everything that must be true of its answer."""
