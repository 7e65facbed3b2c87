"""Turn an estimator's parameters and samples into problems, solve these, and turn solutions into models."""
