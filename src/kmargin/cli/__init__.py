"""The command `kmargin`, which needs the packages of kmargin[cli]."""

import sys

EXTRA = ("typer", "rich", "pandas", "pyarrow", "matplotlib")


def main() -> None:
    """Run the command line; print one sentence if a package is missing."""
    try:
        from kmargin.cli.app import app

        app()
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in EXTRA:
            raise
        sys.stderr.write(f"Error: the command line needs {error.name}. Run: pip install 'kmargin[cli]'\n")
        sys.exit(2)
