"""`python -m kmargin` is the command `kmargin`."""

from kmargin.cli import main

if __name__ == "__main__":
    main()
