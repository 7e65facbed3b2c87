"""Details of tables and model files: damage that only the digest notices, texts, settings, cached fits."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from test_modelfile import file, model  # noqa: F401 - fixtures

from kmargin.core.units import UnitRequest
from kmargin.core.validation import InputError
from kmargin.fitting.fit import Procedure
from kmargin.fitting.spec import KernelBlueprint, LinearBlueprint
from kmargin.tables import model_file
from kmargin.tables.columns import Encoding, to_texts
from kmargin.tables.request import ColumnRequest, Settings, count_features, make_blueprint, make_procedure


def test_a_compressed_copy_of_a_model_is_refused(file):  # noqa: F811
    np.savez_compressed(file.with_suffix(".npz"), **dict(np.load(file)))
    with pytest.raises(InputError, match="is compressed or encrypted"):
        model_file.load(file.with_suffix(".npz"))


def test_whole_numbers_read_the_same_however_stored():
    expected = ["1", "20", None, "x"]
    assert list(to_texts(pd.Series([1, 20.0, None, "x"], dtype=object))) == expected
    assert list(to_texts(pd.Series([1.0, 20.0, np.nan]))) == expected[:3]
    assert list(to_texts(pd.Series([0.5, -3.0]))) == ["0.5", "-3"]


def test_the_machines_of_a_table_are_those_asked_for():
    asked = Settings(kernel="rbf", gamma=0.7, multi_class="ovr", seed=5, jobs=3, shared=False)
    counted = count_features(Encoding(("a", "b")), ColumnRequest(keep=["b"]))
    expected = KernelBlueprint("ovr", kernel="rbf", gamma=0.7, random_state=5, shared=False)
    assert make_blueprint(asked, counted) == expected
    linear = LinearBlueprint("ovr", shared=False, request=UnitRequest(keep=[1]))
    assert make_blueprint(replace(asked, kernel=None), counted) == linear
    assert make_procedure(asked) == Procedure(n_jobs=3, random_state=5)
