"""Solving for many two-class machines: what they are made of, one at a time, side by side."""
