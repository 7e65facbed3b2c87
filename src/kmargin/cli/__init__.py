"""The command `kmargin`, which needs the packages of kmargin[cli]."""

import sys

# packages that only the command line needs
EXTRA = ("typer", "rich", "pandas", "pyarrow", "matplotlib")


def main() -> None:
    """Run the command line; if a package is missing, print which one and exit."""
    try:
        from kmargin.cli.app import app

        app()
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in EXTRA:
            raise
        sys.stderr.write(f"Error: the command line needs {error.name}. Run: pip install 'kmargin[cli]'\n")
        sys.exit(2)
