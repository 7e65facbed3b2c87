"""`kmargin.load_model` and `save_model`: from a notebook to the command line and back."""

import io
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from tables_data import make_table
from typer.testing import CliRunner

from kmargin import KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV, load_model, save_model
from kmargin.cli.app import app
from kmargin.core.validation import InputError
from kmargin.tables import model as seen
from kmargin.tables.model import digest_rows, note_rows
from kmargin.tables.read import Table

FRAME = make_table()
FEATURES = list(FRAME.columns[:-1])
X, y = FRAME[FEATURES], FRAME["outcome"]


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What `kmargin fit` writes."""
    folder = tmp_path_factory.mktemp("fitted")
    FRAME.to_csv(folder / "data.csv", index=False)
    options = "--target outcome --k 2 --C 1 --cv 3 --pairs 0 -q"
    run("fit", folder / "data.csv", *options.split(), "--out", folder / "out")
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return load_model(folder / "out")


FORMS = {
    "pandas": lambda frame: frame,
    "pandas, other columns and order": lambda frame: frame[frame.columns[::-1]].assign(more="x"),
    "the columns needed": lambda frame: frame[["dose", "age"]],
    "polars": lambda frame: polars.DataFrame(frame.to_dict("list")),
    "arrow": lambda frame: polars.DataFrame(frame.to_dict("list")).to_arrow(),
    "a mapping": lambda frame: frame.to_dict("list"), "records": lambda frame: frame.to_dict("records"),
    "texts": lambda frame: frame.astype(str),
    "texts with spaces": lambda frame: frame.map(lambda value: f" {value!r} "),
    "an array": lambda frame: frame.to_numpy(),
    "an array of texts": lambda frame: frame.astype(str).to_numpy(),
    "lists": lambda frame: frame.to_numpy().tolist(),
    "a sparse array": lambda frame: csr_array(frame.to_numpy()),
}  # fmt: skip


@pytest.fixture(scope="module")
def printed(folder):
    """What `kmargin predict` prints for the training rows."""
    return pd.read_csv(
        io.StringIO(run("predict", folder / "out", folder / "data.csv", "--proba", "-q").stdout)
    )


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_model_predicts_on_whatever_holds_its_columns_as_the_command_line_does(printed, model, form):
    given = form(X)
    assert model.predict(given).tolist() == printed["predicted"].tolist()
    np.testing.assert_allclose(model.decision_function(given), printed["decision"], rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(given)[:, 1], printed["probability: yes"], atol=5.1e-4)


def test_a_model_says_what_it_is(folder, model):
    assert repr(model) == "<TableModel: 'outcome' from 'age', 'dose'>"
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == FEATURES
    assert model.needed == {"age", "dose"}
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    assert load_model(str(folder / "out" / "model.kmargin")).needed == model.needed


REFUSED = {
    "a narrow array": (X.to_numpy()[:, :3],
        "X is not a table with the 5 columns that the model was fitted to, in this order: 'age', 'dose', "
        r"'noise', 'x y', 'z'. Give all of them; a single row is \[row\]. A data frame needs only 'age'"),
    "a single row": (X.to_numpy()[0], "X is not a table with the 5 columns"),
    "no table": (X.to_numpy()[None], "X is not a table .* A data frame needs only 'age', 'dose'"),
    "a frame without a column": (X.rename(columns={"dose": "Dosis"}),
        "lacks 1 of the 2 columns .* Did you mean 'Dosis'"),
    "other features": (X[["z", "noise"]], "needs: 'age', 'dose'. It has 'z', 'noise'.$"),
    "names twice": (pd.concat([X, X], axis=1), "more than one column called 'age', 'dose'"),
    "words": (X.assign(age="1,5"), "'age' holds text, such as '1,5', but the model was fitted to numbers"),
    "gaps": (X.assign(age=["", *X["age"].astype(str)[1:]]), "1 missing value, in 'age'"),
}  # fmt: skip


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_a_model_cannot_read_gets_a_sentence(model, given, message):
    with pytest.raises(ValueError, match=message):
        model.predict(given)


SAVED = {
    "SparseSVC": SparseSVC(k=2), "SparseSVC of all features": SparseSVC(k="all", C=float("inf")),
    "SparseSVC with requests": SparseSVC(k=2, groups=[1, 1, 2, 3, 3], keep=[2], signs=[1, 0, 0, 0, 0]),
    "SparseSVCCV": SparseSVCCV(ks=[1, 2], cv=3, standardize=True),
    "KernelSparseSVC": KernelSparseSVC(k=4, gamma=0.01),
    "KernelSparseSVCCV": KernelSparseSVCCV(ks=[2, 4], cv=3, kernel="poly", degree=2),
    "KernelSparseSVC that scales": KernelSparseSVC(k=4, standardize=True),
    "a pipeline that scales twice": make_pipeline(StandardScaler(), KernelSparseSVC(k=3, standardize=True)),
    "a pipeline": make_pipeline(StandardScaler(), SparseSVC(k=2)),
    "a pipeline that fills in": make_pipeline(SimpleImputer(strategy="median"),
        StandardScaler(with_mean=False), SparseSVCCV(ks=[1, 2], cv=3)),
}  # fmt: skip


ARRAYS = ("SparseSVC", "KernelSparseSVCCV", "a pipeline that fills in")  # of which arrays are tested, too


@pytest.mark.parametrize(
    ("name", "is_frame"), [*((name, True) for name in SAVED), *((name, False) for name in ARRAYS)]
)
def test_a_model_of_a_notebook_is_the_same_on_the_command_line(name, is_frame, tmp_path):
    estimator = clone(SAVED[name])
    names = FEATURES if is_frame else [f"x{j}" for j in range(5)]
    given = X if is_frame else X.to_numpy()
    if "Imputer" in str(estimator):
        given = given.copy()
        given[given > 60] = np.nan
    estimator.fit(given, y)
    file = save_model(estimator, tmp_path / "m.kmargin", target="outcome")
    pd.DataFrame(np.asarray(given), columns=names).assign(outcome=y).to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", file, tmp_path / "new.csv")
    told = pd.read_csv(io.StringIO(result.stdout))
    np.testing.assert_allclose(told["decision"], estimator.decision_function(given), rtol=1e-7, atol=1e-9)
    assert told["predicted"].tolist() == estimator.predict(given).tolist()
    assert f"{100 * estimator.score(given, y):.1f} % of 60 rows agree with column 'outcome'" in result.stderr
    again, last = load_model(file), estimator[-1] if isinstance(estimator, Pipeline) else estimator
    chosen = {
        "k": getattr(last, "k_", last.get_params().get("k")),
        "C": getattr(last, "C_", last.get_params().get("C")),
    }
    assert again.parameters == {**chosen, "shared": True}
    if hasattr(estimator, "predict_proba"):
        np.testing.assert_allclose(again.predict_proba(given), estimator.predict_proba(given), rtol=1e-7)
    else:
        with pytest.raises(InputError, match="was saved without probabilities"):
            again.predict_proba(given)
    assert load_model(save_model(again, tmp_path / "again.kmargin")).target == "outcome"


@pytest.mark.parametrize(
    ("names", "dtype"),
    [([0, 1], "i"), ([0, 1], "u1"), ([1.0, 2.0], "f"), (["a", "b"], "U"), (["a", "b"], "O"), ([0, 1], "?")],
)
def test_classes_keep_their_type(names, dtype, tmp_path):
    model = SparseSVC(k=1).fit(X, np.resize(np.array(names, dtype=dtype), 60))
    again = load_model(save_model(model, tmp_path / "m.kmargin"))
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert again.classes_.dtype.kind == {"u1": "i", "O": "U", "?": "b"}.get(dtype, dtype)


UNSAVED = {
    "another model": (LogisticRegression(), "LogisticRegression is not a model that kmargin can save"),
    "another step": (make_pipeline(MinMaxScaler(), SparseSVC(k=2)),
        "A pipeline with MinMaxScaler before the estimator cannot be saved"),
    "an indicator": (make_pipeline(SimpleImputer(add_indicator=True), SparseSVC(k=2)),
        "only a SimpleImputer that fills in a number for every column"),
    "a kernel of one's own": (KernelSparseSVC(k=2, kernel="precomputed"),
        "a custom kernel function cannot be saved"),
}  # fmt: skip


@pytest.mark.parametrize(("model", "message"), UNSAVED.values(), ids=UNSAVED.keys())
def test_what_cannot_be_saved_gets_a_sentence_and_leaves_no_file(model, message, tmp_path):
    given = X.to_numpy() @ X.to_numpy().T if "precomputed" in str(model) else X
    if "indicator" in str(model):
        given = X.mask(X > 60)
    model.fit(given, y)
    with pytest.raises(InputError, match=message):
        save_model(model, tmp_path / "m.kmargin")
    assert list(tmp_path.iterdir()) == []


FRESH = """
import sys
import kmargin
model = kmargin.load_model(sys.argv[1])
print(model.predict([[1.0, 50.0, 0.0, 0.0, 5.0]])[0], sorted(model.needed))
kmargin.save_model(model, sys.argv[2])
print(kmargin.load_model(sys.argv[2]))
"""


def test_a_fresh_interpreter_needs_nothing_but_the_name(folder, tmp_path):
    """As the README writes it."""
    words = [sys.executable, "-W", "error", "-c", FRESH, folder / "out", tmp_path / "copy.kmargin"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[0].endswith("['age', 'dose']")
    assert done.stdout.splitlines()[1] == "<TableModel: 'outcome' from 'age', 'dose'>"


def test_without_pandas_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "kmargin.tables.model_file", None)
    monkeypatch.delattr("kmargin.tables.model_file", raising=False)
    monkeypatch.delattr("kmargin.tables", raising=False)  # is there again afterwards, with all its modules
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.delitem(sys.modules, "kmargin.tables.model_file")
    for name in [name for name in sys.modules if name.startswith("kmargin.tables")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ValueError, match=r"need pandas\. Run: pip install 'kmargin\[cli\]'"):
        load_model("nowhere")


def test_rows_of_the_training_are_recognised(folder, model, tmp_path):
    told = run("predict", folder / "out", folder / "data.csv").stderr
    assert "Note: rows that the model was fitted to: 60 of 60. Its accuracy on them" in told
    FRAME.iloc[:5].to_csv(tmp_path / "five.csv", index=False)
    told = run("predict", folder / "out", tmp_path / "five.csv").stderr
    assert "was fitted to: 5 of 5." in told  # and to 55 others
    new = make_table(seed=9)
    half = pd.concat([FRAME.iloc[:20], new.iloc[:40]])
    half.to_csv(tmp_path / "half.csv", index=False)
    assert "was fitted to: 20 of 60." in run("predict", folder / "out", tmp_path / "half.csv").stderr
    assert model.share_seen(half) == model.share_seen(half[["age", "dose"]]) == pytest.approx(1 / 3)
    assert model.share_seen(new) == 0
    new.to_csv(tmp_path / "new.csv", index=False)
    assert "fitted to" not in run("predict", folder / "out", tmp_path / "new.csv").stderr
    assert run("predict", folder / "out", folder / "data.csv", "-q").stderr == ""
    seen = replace(model, seen=model.seen._replace(by_used=np.empty(0, np.int64)))
    assert (seen.share_seen(X), seen.share_seen(X[["age", "dose"]])) == (1, 0)
    assert replace(model, seen=None).share_seen(X) == seen.share_seen(X.assign(z="x")) == 0


def test_values_far_outside_the_training_range_are_pointed_out(folder, model, tmp_path):
    new = make_table(40, seed=9)
    new.loc[[3, 7], "dose"] = [650.0, 480.0]  # another unit
    new.loc[5, "noise"] = 1e6  # of no use to the model
    new.to_csv(tmp_path / "new.csv", index=False)
    told = run("predict", folder / "out", tmp_path / "new.csv").stderr
    low, high = FRAME["dose"].min(), FRAME["dose"].max()
    assert (
        f"Column 'dose' is far outside its training range ({low:.4g} to {high:.4g}) in 2 rows, such as "
        "650 in row 4. Check its unit"
    ) in told
    assert "noise" not in told
    new = make_table(40, seed=9)
    assert not any("range" in note for note in model.predict_table(Table(new)).notes)
    # most rows beyond the range, none of them by far
    shifted = model.predict_table(Table(new.assign(age=FRAME["age"].max() + 0.1)))
    assert "'age' is far outside its training range" in shifted.notes[0]
    assert replace(model, ranges=None).predict_table(Table(new.assign(age=1e6))).notes == []


FAR = [  # values where the training range is 0 to 1, and what is said of them
    ([1.5, -0.5], ""), ([1.6], "1 row, such as 1.6 in row 1"), ([0, -0.6], "1 row, such as -0.6 in row 2"),
    ([1.1, 1.2, 1.1, 0], ""), ([1.1, 1.2, -0.1, 0, 0], "3 rows, such as 1.2 in row 2"), ([1.1, 0] * 3, ""),
]  # fmt: skip


@pytest.mark.parametrize(("values", "words"), FAR)
def test_values_are_far_outside_from_half_a_range_on_or_if_most_rows_are_outside(model, values, words):
    table = Table(pd.DataFrame({"age": values, "dose": 0.5}))
    notes = replace(model, ranges=np.repeat([[0.0], [1.0]], 5, axis=1)).predict_table(table).notes
    assert [note.split(") in ")[1].split(". ")[0] for note in notes] == [words] * bool(words)
    assert replace(model, ranges=np.ones((2, 5))).predict_table(table).notes == [], "a constant has no range"


def test_numbers_that_many_rows_share_tell_no_rows_apart():
    rows = np.column_stack([np.arange(100) % 3, np.arange(100)])
    noted = note_rows(rows, np.array([0]))
    assert len(noted.by_used) == 0
    assert noted.share(rows, by_all=True) == 1.0
    assert noted.share(rows[:, :1], by_all=False) == 0.0
    assert [len(note_rows(np.maximum(rows, n), np.array([1])).by_used) for n in (5, 6)] == [95, 0]
    assert len(note_rows(rows[:1], np.empty(0, int)).by_used) == 0


def test_of_many_rows_a_fair_sample_is_kept(monkeypatch):
    monkeypatch.setattr(seen, "MAX_DIGESTS", 200)
    rng = np.random.default_rng(0)
    rows, others = rng.standard_normal((3000, 3)), rng.standard_normal((3000, 3))
    noted = note_rows(rows, np.array([0, 1]))
    assert len(noted.by_all) == 200
    assert noted.share(rows, by_all=True) == 1.0
    assert noted.share(others, by_all=True) == 0.0
    assert noted.share(np.vstack([rows, others]), by_all=True) == pytest.approx(0.5, abs=0.1)


def test_digests_forgive_what_files_do_to_numbers_and_nothing_else():
    rows = np.random.default_rng(0).standard_normal((50, 4))
    digests = digest_rows(rows)
    np.testing.assert_array_equal(digest_rows(np.nextafter(rows, 9)), digests)
    assert (digest_rows(rows * (1 + 1e-5)) != digests).all()
    assert (digest_rows(rows[:, ::-1]) != digests).all()
    np.testing.assert_array_equal(
        digest_rows(np.array([[0.0, np.nan]])), digest_rows(np.array([[-0.0, -np.nan]]))
    )


def test_a_folder_that_is_not_there_gets_a_sentence(model, tmp_path):
    with pytest.raises(ValueError, match=r"two\.kmargin is in a folder that does not exist\. Create"):
        save_model(model, tmp_path / "nowhere" / "two.kmargin")
