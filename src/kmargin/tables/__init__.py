"""People's tables: files read, columns made ready, machines chosen, results written down."""
