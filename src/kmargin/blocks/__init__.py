"""Data that stay where they are: on the workers of a cluster, in files, on a GPU."""

from kmargin.blocks.protocol import Block, Blocks, Held

__all__ = ["Block", "Blocks", "Held"]
