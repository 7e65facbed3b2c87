"""The paper's experiments: every table and figure, run again."""
