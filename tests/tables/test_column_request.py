"""Constraints on columns: the features they refer to, and what k counts; mistakes are in `tests/stored`."""

from dataclasses import replace
from pathlib import Path

import pytest
from tables_data import make_table
from typer.testing import CliRunner

from kmargin.cli.app import app
from kmargin.core.units import UnitRequest
from kmargin.core.validation import InputError
from kmargin.fitting.spec import KernelBlueprint, LinearBlueprint
from kmargin.tables.columns import Encoding, Roles, count_features, read_groups
from kmargin.tables.search import Settings

ENCODING = Encoding(("age", "site", "lab_a", "lab_b", "lab"), {"site": ("north", "south")})
VALUES = {"encode": "onehot", "each_value": True}
NAMES = ["age", "site=north", "site=south", "lab_a", "lab_b", "lab"]


def ask(**asked):
    return count_features(ENCODING, Roles(**asked))


COUNTED = {
    "text columns": (ENCODING, {}, "variables", ["age", "site", "site", "lab_a", "lab_b", "lab"]),
    "each value": (ENCODING, {"each_value": True}, "features", NAMES),
    "numbers only": (Encoding(("a", "b")), {}, "features", ["a", "b"]),
    "a single text column": (Encoding(("site",), {"site": ("a", "b")}), {}, "features", ["site=a", "site=b"]),
    "a separator": (ENCODING, {"group_by": "_"}, "groups", ["age", "site", "site", "lab", "lab", "lab"]),
    "the first separator": (Encoding(("a.b.c", "a.x", "b", ".y")), {"group_by": "."}, "groups",
        ["a", "a", "b", ".y"]),
    "a file": (ENCODING, {"groups": {"site": "life", "age": "life"}}, "groups",
        ["life", "life", "life", "lab_a", "lab_b", "lab"]),
    "a group with the name of a column": (ENCODING, {"groups": {"site": "lab", "age": "lab"}}, "groups",
        ["lab", "lab", "lab", "lab_a", "lab_b", "lab (by itself)"]),
    "a file, and each value": (ENCODING, {"groups": {"lab_a": "labs", "lab_b": "labs"}, "each_value": True},
        "groups", ["age", "site=north", "site=south", "labs", "labs", "lab"]),
}  # fmt: skip


@pytest.mark.parametrize(("encoding", "asked", "unit_label", "labels"), COUNTED.values(), ids=COUNTED.keys())
def test_k_counts_features_variables_or_groups(encoding, asked, unit_label, labels):
    counted = count_features(encoding, Roles(**asked))
    assert (counted.unit_label, list(counted.labels)) == (unit_label, labels)
    assert counted.units.n_units == len(set(labels))
    assert counted.request.is_empty == (unit_label == "features")


def test_names_are_those_of_columns_then_of_values_then_of_groups():
    assert ask(keep=["site"]).always_in.tolist() == [False, True, True, False, False, False]
    assert ask(keep=["site=south"]).n_fixed == 1
    assert ask(avoid=["site=south"]).request.avoid == [2]
    labs = ask(group_by="_", keep=["lab"])  # the column, and with it the group that it is in
    assert labs.always_in.tolist() == [False, False, False, True, True, True]
    assert ask(groups={"lab_a": "labs", "lab_b": "labs"}, avoid=["labs"]).request.avoid == [3, 4]
    with pytest.raises(InputError, match="groups puts all 6 features"):
        ask(groups=dict.fromkeys(ENCODING.columns, "a"))


def test_signs_are_those_of_all_values_of_a_column():
    counted = ask(signs=["site=+", "lab_a=-", "site=north=+"])
    assert [counted.sign_of(j) for j in range(6)] == ["", "+", "+", "-", "", ""]


FILES = {
    "three columns": ("feature,group,x\na,b,1\n", "has columns 'feature', 'group', 'x'. It needs two"),
    "a feature twice": ("feature,group\nage,a\nage,b\n", "row 2 of groups.csv .* repeats a feature. Put"),
    "a gap": ("feature,group\nage,a\nz,\n", "row 2 of groups.csv lacks a feature or a group"),
    "no rows": ("feature,group\n", "groups.csv has no rows of data"),
}


@pytest.mark.parametrize(("content", "message"), FILES.values(), ids=FILES.keys())
def test_a_file_that_is_no_list_of_groups_gets_one_sentence(content, message, tmp_path):
    (tmp_path / "groups.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        read_groups(tmp_path / "groups.csv")


def test_groups_may_be_numbers_and_columns_in_any_order(tmp_path):
    path = tmp_path / "groups.tsv"
    path.write_text("group\tfeature\n1\tage\n2\tz\n")
    assert read_groups(path) == {"age": "1", "z": "2"}


@pytest.fixture
def _data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_table().to_csv("data.csv", index=False)


@pytest.mark.parametrize(
    "asked", [{"keep": ["a"]}, {"signs": ["a=+"]}, {"avoid": ["a"]}, {"group_by": "_"}, VALUES], ids=str
)
def test_a_kernel_model_has_no_constraints_on_features(asked):
    with pytest.raises(InputError, match="--each-value apply to features, but with --kernel k counts"):
        Settings(kernel="rbf").check(Roles(**asked))


@pytest.mark.usefixtures("_data")
def test_default_values_of_k_are_not_below_the_number_of_kept_columns():
    words = ["path", "data.csv", "--target", "outcome", "--keep", "z", "--keep", "noise", "--cv", "0"]
    result = CliRunner().invoke(app, [*words, "--out", "p.csv"])
    assert result.exit_code == 0, result.output
    ks = [line.split(",")[0] for line in Path("p.csv").read_text().splitlines()[1:]]
    assert ks == ["2", "3", "4", "5"]


def test_models_are_those_that_the_settings_describe():
    asked = Settings(kernel="rbf", gamma=0.7, multi_class="ovr", seed=5, jobs=3, shared=False)
    counted, plain = (count_features(Encoding(("a", "b")), Roles(keep=keep)) for keep in (["b"], []))
    expected = KernelBlueprint("ovr", kernel="rbf", gamma=0.7, random_state=5, shared=False)
    assert asked.blueprint(plain) == expected
    linear = LinearBlueprint("ovr", shared=False, request=UnitRequest(keep=[1]))
    assert replace(asked, kernel=None).blueprint(counted) == linear
