"""The search for a support: swap features, or groups of them, while that lowers the objective."""
