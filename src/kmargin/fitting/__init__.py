"""From parameters and samples to problems, and from solutions to models."""
