"""The mathematics: loss, sparsity set, units, problem, and the numeric tools below them."""
