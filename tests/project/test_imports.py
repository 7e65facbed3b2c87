"""What is imported, and when: the package and its help are there at once, the rest when it is asked for."""

import resource
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from kmargin.cli import main
from kmargin.cli.app import SUBCOMMANDS, app

ALL_NAMES = "import kmargin; [getattr(kmargin, name) for name in kmargin.__all__]"
HELP = "import sys; sys.argv = ['kmargin', '--help']; from kmargin.cli import main; main()"
OPTIONAL = {"dask", "distributed", "jinja2", "matplotlib", "pandas", "polars", "pyarrow", "rich", "typer"}


def modules_after(code):
    """The modules that an interpreter of its own has loaded at its end."""
    script = f"import atexit, sys; atexit.register(lambda: sys.stderr.write(' '.join(sys.modules)))\n{code}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def packages(modules):
    return {module.split(".")[0] for module in modules}


def test_importing_the_package_imports_nothing_else():
    loaded = modules_after("import kmargin")
    assert {module for module in loaded if module.startswith("kmargin")} == {"kmargin"}
    assert not packages(loaded) & (OPTIONAL | {"numba", "numpy", "scipy", "sklearn"})
    assert not packages(modules_after("import kmargin.datasets")) & {"pooch", "requests", "urllib3"}


def test_public_names_need_neither_the_command_line_nor_the_experiments_nor_optional_packages():
    """Some of these packages scikit-learn imports where they are installed, so they are made unavailable."""
    hidden = f"import sys; sys.modules.update(dict.fromkeys({sorted(OPTIONAL)}))\n"
    loaded = modules_after(hidden + ALL_NAMES)
    applications = ("kmargin.cli", "kmargin.paper", "kmargin.report", "kmargin.tables.")
    assert "kmargin.solvers" in loaded
    assert not {module for module in loaded if module.startswith(applications)}


def test_a_fit_imports_no_library_of_other_arrays():
    fit = "SparseSVC(k=1).fit(np.eye(4), [0, 1, 0, 1]).predict(np.eye(4))"
    loaded = packages(modules_after(f"import numpy as np; from kmargin import SparseSVC; {fit}"))
    assert "kmargin" in loaded
    assert not loaded & {"array_api_compat", "array_api_strict", "dask", "distributed", "matplotlib", "torch"}


def test_a_worker_of_dask_needs_neither_numba_nor_scikit_learn():
    loaded = packages(modules_after("from kmargin.data.blocks import dask_blocks, sums"))
    assert not loaded & {"numba", "sklearn"}


def test_the_help_imports_nothing_that_computes():
    loaded = modules_after(HELP)
    ours = {module for module in loaded if module.startswith("kmargin")}
    assert ours == {"kmargin", "kmargin.cli", "kmargin.cli.app"}
    assert not packages(loaded) & {"matplotlib", "numba", "numpy", "pandas", "scipy", "sklearn"}


def processor_seconds(code):
    """The processor time of an interpreter of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize(
    ("code", "first", "budget"),
    [
        (HELP, "pass", 0.5),
        ("import kmargin", "pass", 0.1),
        (ALL_NAMES, "import numba, scipy.optimize, sklearn.svm, sklearn.model_selection", 2.0),
    ],
    ids=["the help", "the package", "every public name beyond its libraries"],
)
def test_importing_keeps_to_a_budget_of_processor_time(code, first, budget):
    # on a busy machine a run may take longer than it has to
    assert any(processor_seconds(code) - processor_seconds(first) < budget for _ in range(3))


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_the_summary_in_the_list_of_commands_opens_the_help_of_the_command(name):
    command = get_command(app).get_command(None, name)
    assert " ".join(command.help.split("\n\n")[0].split()) == SUBCOMMANDS[name][1]


def test_the_help_of_the_command_lists_its_subcommands_and_other_words_are_corrected():
    told = " ".join(CliRunner().invoke(app, ["--help"]).stdout.split())
    for name, (_, summary) in SUBCOMMANDS.items():
        assert f"{name} {summary}" in told.replace(" │ │", "")
    done = CliRunner().invoke(app, ["predic"])
    assert done.exit_code == 2
    assert "Did you mean 'predict'?" in done.stderr


@pytest.mark.parametrize("missing", ["pandas", "rich.table", "kmargin.cli.apps", None])
def test_a_package_that_a_command_misses_is_named_and_a_missing_module_of_ours_is_a_bug(
    missing, monkeypatch, capsys
):
    def fail():
        raise ModuleNotFoundError(name=missing)

    monkeypatch.setattr("kmargin.cli.app.app", fail)
    is_known = missing in ("pandas", "rich.table")
    with pytest.raises(SystemExit if is_known else ModuleNotFoundError):
        main()
    sentence = f"Error: the command line needs {missing}. Run: pip install 'kmargin[cli]'\n"
    assert capsys.readouterr().err == sentence * is_known
