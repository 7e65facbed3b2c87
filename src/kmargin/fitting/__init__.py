"""Make problems of an estimator's parameters and samples, solve them, and make models of the solutions."""
