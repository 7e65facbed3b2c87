"""The command `kmargin`.

What it does is in `commands`, which needs kmargin[cli].
"""

import sys
from typing import Any

EXTRA = ("typer", "rich", "pandas", "pyarrow", "matplotlib")


def main() -> None:
    """Run the command line; say in one sentence what is missing if it cannot."""
    try:
        make_app()()
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in EXTRA:
            raise
        sys.exit(_complain(f"Error: the command line needs {error.name}. Run: pip install 'kmargin[cli]'", 2))
    except KeyboardInterrupt:
        sys.exit(_complain("Interrupted; nothing was written.", 130))


def make_app() -> Any:
    """All commands together."""
    from kmargin.cli.app import app

    return app


def _complain(sentence: str, code: int) -> int:
    sys.stderr.write(sentence + "\n")
    return code
