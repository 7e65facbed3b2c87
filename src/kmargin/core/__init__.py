"""The optimisation problem (loss, sparsity set, units, design matrix) and its numeric and checking tools."""
