"""Every public name says what it takes, what it returns, and shows it; and what it shows is true."""

import ast
import doctest
import inspect
import sys
from enum import Enum
from pkgutil import resolve_name

import matplotlib
import pytest
from numpydoc.docscrape import ClassDoc, get_doc_object
from numpydoc.validate import validate

import kmargin
import kmargin.datasets

matplotlib.use("Agg")

# of style alone: extended summaries, blank lines, verbs in the third person, types of a single return value
NOT_ASKED_FOR = {"ES01", "EX01", "SA01", "GL01", "GL02", "SS05", "SS06", "RT02"}

# the attributes of these are what others take as parameters; they are made by the package
RESULTS = ("HonestScore", "OuterRecord", "SelectionBounds", "Solution", "SparsityPath", "StepRecord")

# `See Also` has who makes one
NO_EXAMPLE = {"HonestScore", "OuterRecord", "SelectionBounds", "StepRecord", "load_model"}


PUBLIC = [f"kmargin.{name}" for name in kmargin.__all__]
PUBLIC += [f"kmargin.datasets.{name}" for name in kmargin.datasets.__all__ if name != "TABLE_1"]


def public_methods(cls):
    """Methods and properties that are documented by the package itself, where they are defined."""
    for name, value in inspect.getmembers_static(cls):
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        is_ours = (getattr(function, "__module__", None) or "").startswith("kmargin")
        if not name.startswith("_") and inspect.isroutine(function) and is_ours:
            yield name, function


def public_functions():
    """By where they are defined, once each."""
    found = {}
    for name in kmargin.__all__:
        if inspect.isclass(getattr(kmargin, name)):
            for method, function in public_methods(getattr(kmargin, name)):
                found.setdefault((function.__module__, function.__qualname__), f"kmargin.{name}.{method}")
    return sorted(found.values())


def complaints(name):
    """What numpydoc has to say, apart from style."""
    return [f"{code}: {text}" for code, text in validate(name)["errors"] if code not in NOT_ASKED_FOR]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_documented_in_full(name):
    home, _, last = name.rpartition(".")
    value, found = getattr(sys.modules[home], last), complaints(name)
    if last in (*RESULTS, "Dataset", "RemoteFile") or (inspect.isclass(value) and issubclass(value, Enum)):
        found = [text for text in found if not text.startswith("PR01")]
    assert found == []
    assert home == "kmargin.datasets" or last in NO_EXAMPLE or ">>>" in value.__doc__


def default_of(name, parameter):
    return inspect.signature(resolve_name(name)).parameters[parameter.strip("*")].default


@pytest.mark.parametrize("name", PUBLIC + public_functions())
def test_defaults_are_those_documented_or_of_another_class_or_none_or_false(name):
    for entry in get_doc_object(resolve_name(name))["Parameters"]:
        parameters, (_, stated, values) = entry.name.split(", "), entry.type.partition("default=")
        documented = [ast.literal_eval(value) for value in values.split(" and ")] if stated else []
        for at, parameter in enumerate(parameters):
            allowed = [documented[at % len(documented)]] if stated else [None, False, inspect.Parameter.empty]
            if entry.type.startswith("see "):
                allowed = [default_of(f"kmargin.{entry.type[4:]}", parameter)]
            assert default_of(name, parameter) in allowed, parameter


@pytest.mark.parametrize("name", RESULTS)
def test_results_document_every_field(name):
    cls = getattr(kmargin, name)
    fields = set(inspect.signature(cls).parameters)
    assert fields <= {entry.name for entry in ClassDoc(cls)["Attributes"]}


@pytest.mark.parametrize("name", public_functions())
def test_every_public_method_is_documented_in_full(name):
    _, cls, method = name.split(".")
    own = inspect.getattr_static(getattr(kmargin, cls), method)
    inherited = (getattr(own, "__func__", own).__doc__ is None) and inspect.getdoc(own) is not None
    inherited = inherited or inspect.getdoc(getattr(getattr(kmargin, cls), method)) is not None
    found = [text for text in complaints(name) if not (inherited and text.startswith("GL08"))]
    assert found == []


MODULES = sorted({getattr(kmargin, name).__module__ for name in kmargin.__all__})
MODULES += ["kmargin.datasets.loaders", "kmargin.datasets.simulate"]


@pytest.mark.parametrize("module", MODULES)
def test_what_docstrings_show_is_true(module):
    import matplotlib.pyplot as plt

    result = doctest.testmod(sys.modules[module])
    plt.close("all")
    assert result.failed == 0
    assert result.attempted > 0
