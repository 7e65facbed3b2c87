"""The command `kmargin`, which needs the packages of kmargin[cli]."""

import sys
from typing import Any

EXTRA = ("typer", "rich", "pandas", "pyarrow", "matplotlib")


def main() -> None:
    """Run the command line; if a package or the user stops it, print one sentence."""
    try:
        make_app()()
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in EXTRA:
            raise
        sys.stderr.write(f"Error: the command line needs {error.name}. Run: pip install 'kmargin[cli]'\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted; nothing was written.\n")
        sys.exit(130)


def make_app() -> Any:
    """Return the typer application."""
    from kmargin.cli.app import app

    return app
