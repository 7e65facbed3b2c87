"""The optimisation problem (loss, design matrix, sparsity constraint), linear algebra, and input checks."""
