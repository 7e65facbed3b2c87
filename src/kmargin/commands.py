"""All commands of `kmargin`, each from a module of its own."""

from typing import Annotated

import typer

from kmargin import __version__
from kmargin.fit_command import fit_command
from kmargin.path_command import path_command
from kmargin.predict_command import predict_command
from kmargin.reproduction import data_app, reproduce_command
from kmargin.stability_command import stability_command

app = typer.Typer(
    name="kmargin",
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
    """Options of the command itself."""


app.command("fit")(fit_command)
app.command("predict")(predict_command)
app.command("path")(path_command)
app.command("stability")(stability_command)
app.command("reproduce")(reproduce_command)
app.add_typer(data_app, name="data")
