"""Cross-validation: scores, the choice of k and C, nested scores, calibrated probabilities."""
