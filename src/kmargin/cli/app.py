"""The command `kmargin`: it imports a subcommand only to run it, and prints an error as one sentence."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from kmargin import __version__

COMMANDS, PAPER = "kmargin.cli.commands", "kmargin.cli.reproduce"
# the module of each subcommand, and the first sentence of its help, which `kmargin --help` prints without
# importing the module
SUBCOMMANDS = {
    "fit": (COMMANDS, "Choose k and C by cross-validation; write the model, tables and a report."),
    "predict": (COMMANDS, "Predict new rows; where the table has the target, report the accuracy."),
    "path": (COMMANDS, "Print which features enter and leave as k grows, and the score for each k."),
    "stability": (COMMANDS, "Report which features are selected consistently on random halves of the rows."),
    "reproduce": (PAPER, "Run the paper's experiments and show our numbers beside the printed ones."),
    "data": (PAPER, "The data sets of the paper's Table 1."),
}
UsageError: Any = typer.BadParameter.__base__  # defined in click, or in typer's copy of click


@contextmanager
def plain_errors() -> Iterator[None]:
    """Print an error of the `with` block that users can cause, and exit with code 2; with 130 on Ctrl-C."""
    try:
        yield
        sys.stdout.flush()  # a full disk raises OSError here, not when Python exits
    except UsageError as error:
        sentence = error.format_message().rstrip(".")
        if not sentence:  # the command was given without arguments, and has printed its help
            raise
        from kmargin.cli.terminal import say

        command = "kmargin" if error.ctx is None else error.ctx.command_path
        say(f"Error: {sentence}{'' if sentence.endswith('?') else '.'} See {command} --help.")
        raise typer.Exit(2) from error
    except KeyboardInterrupt as interrupt:
        typer.echo("Interrupted; nothing was written.", err=True)
        raise typer.Exit(130) from interrupt
    except BrokenPipeError:
        raise  # a program that reads our output, such as head, has ended: typer exits without a message
    except (OSError, ValueError, MemoryError) as error:
        from kmargin.cli.terminal import describe_error, say

        sentence = describe_error(error)
        if sentence is None:
            raise
        say(f"Error: {sentence}")
        raise typer.Exit(2) from error


class LazyGroup(TyperGroup):
    """The command `kmargin`, which imports only the module of the subcommand that is called.

    `kmargin --help` imports none of them: it lists the subcommands with the summaries in SUBCOMMANDS.
    """

    is_listing = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: TyperCommand(name, help=help) for name, (_, help) in SUBCOMMANDS.items()}

    def make_context(self, *args: Any, **more: Any) -> Any:
        with plain_errors():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # escapes characters that its encoding lacks
        with plain_errors():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if self.is_listing or cmd_name not in SUBCOMMANDS:
            return self.commands.get(cmd_name)
        module: Any = import_module(SUBCOMMANDS[cmd_name][0])
        return typer.main.get_group(module.app).commands[cmd_name]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.is_listing = True
        super().format_help(ctx, formatter)
        self.is_listing = False


app = typer.Typer(
    name="kmargin",
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Support vector machines that use at most k features, or at most k training points.",
)


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kmargin {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Declare the options that `kmargin` has itself, besides those of its subcommands."""
