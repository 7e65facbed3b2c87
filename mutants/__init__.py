"""Mutation tests: `python -m mutants` draws faults at random and runs the tests that execute their lines."""
