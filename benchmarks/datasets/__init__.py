"""What is loaded or simulated. Nothing here fits or scores."""
