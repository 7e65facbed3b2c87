"""The paper's experiments: run again, tabulated, drawn, and compared with what was published."""
