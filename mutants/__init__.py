"""Wrong programs, and the tests that notice: `python -m mutants`."""
