"""Labelled data of every kind: what is asked of them, how they are read, and who answers."""
