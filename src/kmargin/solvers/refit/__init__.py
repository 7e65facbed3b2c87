"""The exact minimum of the objective on a given support."""
