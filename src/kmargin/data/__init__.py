"""X and y of every kind: design matrices in memory, blocks of rows elsewhere, labelled samples."""
