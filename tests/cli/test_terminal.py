"""What is printed in a terminal of any width, without colours, and where there is no terminal."""

import fcntl
import io
import os
import re
import struct
import sys
import termios
import threading

import pytest
from tables_data import make_table
from typer.testing import CliRunner

from kmargin.cli.app import app
from kmargin.cli.terminal import show_analysis, wrap
from kmargin.core import jit
from kmargin.fitting import progress
from kmargin.fitting.progress import COMPILING, progress_bar
from kmargin.tables.analysis import analyse
from kmargin.tables.dataset import Roles, prepare
from kmargin.tables.read import Table
from kmargin.tables.search import Settings

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*(3[0-8]|9[0-7])[0-9;]*m")
END = b"\0"  # of all that is written to a terminal
LONG = "a name that goes on and on, as names of measurements do (mean of three), in mmol/l"


class PseudoTerminal:
    """A terminal of some width, in place of this process's own streams."""

    def __init__(self, width):
        self.width, self.seen = width, b""

    def __enter__(self):
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, self.width, 0, 0))
        self.saved = [os.dup(number) for number in (0, 1, 2)]
        self.streams = sys.stdout, sys.stderr
        for number in (0, 1, 2):
            os.dup2(slave, number)
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(os.fdopen(os.dup(slave), "wb"), "utf-8", line_buffering=True) for _ in range(2)
        )
        os.close(slave)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        return self

    def _read(self):
        while not self.seen.endswith(END):
            self.seen += os.read(self.master, 4096)
        self.seen = self.seen.removesuffix(END)

    def __exit__(self, *error):
        for stream in (sys.stdout, sys.stderr):
            stream.close()
        os.write(1, END)
        self.reader.join()  # before the last writer leaves: what is on its way then may be lost
        sys.stdout, sys.stderr = self.streams
        for number, before in enumerate(self.saved):
            os.dup2(before, number)
            os.close(before)
        os.close(self.master)

    @property
    def text(self):
        return self.seen.decode()

    @property
    def lines(self):
        """As a reader sees them."""
        return re.split(r"[\r\n]+", ESCAPE.sub("", self.text))


@pytest.fixture(scope="module")
def analyses():
    two = make_table().rename(columns={"dose": LONG})
    settings = Settings(ks=[1, 2], Cs=[1.0], cv=3, repeats=1, pairs=2, permutations=2)
    kept = Settings(k=2, Cs=[1.0], cv=3, pairs=0)
    three = Table(make_table(n_classes=3).rename(columns={"dose": LONG}))
    return [
        analyse(prepare(Table(two.assign(id=range(60))), Roles("outcome")), settings),
        analyse(prepare(three, Roles("outcome", keep=["z"], signs=["z=+"])), kept),
        analyse(prepare(three, Roles("outcome")), Settings(kernel="rbf", k=3, Cs=[1.0], cv=3)),
    ]


@pytest.fixture(autouse=True)
def surroundings(tmp_path, monkeypatch):
    for name in ("NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.chdir(tmp_path)
    make_table().rename(columns={"dose": LONG}).to_csv("data.csv", index=False)


@pytest.mark.parametrize("width", [80, 140])
def test_an_analysis_fits_into_a_terminal(analyses, width):
    with PseudoTerminal(width) as terminal:
        for analysis in analyses:
            show_analysis(analysis)
    assert max(map(len, terminal.lines)) <= width
    assert any(len(line) > 0.8 * width for line in terminal.lines), "the width is used"
    assert COLOUR.search(terminal.text)
    words = " ".join(" ".join(terminal.lines).split())
    for part in ("2 of 5 features", "k = 2, C = 1", "'id' numbers the rows", "always in, +", "favours"):
        assert part in words


def test_without_colours_there_are_none(analyses, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    with PseudoTerminal(80) as terminal:
        show_analysis(analyses[0])
    assert "2 of 5 features" in terminal.text
    assert not COLOUR.search(terminal.text)


def test_without_a_terminal_there_are_no_escapes_and_lines_of_a_page(analyses, capsys):
    for analysis in analyses:
        show_analysis(analysis)
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100


COMMANDS = {
    "fit": "fit data.csv --target outcome --k 2 --C 1 --cv 3 --pairs 2",
    "path": "path data.csv --target outcome --ks 1,2 --cv 3",
    "stability": "stability data.csv --target outcome --k 2 --pairs 4",
    "a mistake": "fit data.csv --target outcom",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_commands_keep_to_the_width_of_a_terminal_and_to_plain_text_in_a_pipe(command):
    with PseudoTerminal(80) as terminal:
        code = app(command.split(), standalone_mode=False)
    assert (code == 2) == ("outcom" in command.split())
    table = [line for line in terminal.lines if not line.startswith(("Error: ", "Note: "))]
    assert max(map(len, table)) <= 80, "notes and errors are broken by the terminal itself"
    piped = CliRunner().invoke(app, command.split())
    assert "\x1b" not in piped.output
    assert "━" not in piped.output, "bars are for terminals"


@pytest.mark.parametrize("width", [80, 140])
def test_a_bar_in_a_terminal_says_what_takes_so_long(width, monkeypatch):
    monkeypatch.setattr(jit, "has_cached_code", lambda function: False)
    monkeypatch.setattr(progress, "_said", [])
    with PseudoTerminal(width) as terminal, progress_bar("fits", 1, verbose=1) as bar:
        bar.advance()
    assert bar.progress.console.stderr, "what a command prints may go to a file"
    assert COMPILING in " ".join(line.strip() for line in terminal.lines)
    assert any(re.match(r"fits +━+ +1/1", line) for line in terminal.lines), terminal.text
    assert max(map(len, terminal.lines)) <= width


def test_a_number_and_its_per_cent_stay_on_one_line():
    assert wrap("interval of 83.0 to 96.1 %; [red]", 16) == "interval of 83.0\nto 96.1 %; [red]"
    assert wrap("interval 83.0 to 96.1 %", 22) == "interval 83.0 to\n96.1 %"
