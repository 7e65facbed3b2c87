"""The estimators checked with several versions of scikit-learn: `nox -s sklearn`, or `nox -s "sklearn(1.8)"`.

Environments are kept in `.nox`; `nox --envdir FOLDER` puts them elsewhere, `nox -R` reuses them.
"""

import nox

SCIKIT_LEARN = ("1.7", "1.8", "1.9")


@nox.session
@nox.parametrize("version", SCIKIT_LEARN, ids=SCIKIT_LEARN)
def sklearn(session: nox.Session, version: str) -> None:
    """Run scikit-learn's own checks of estimators, and our tests of pipelines, clones and grid searches."""
    session.install("-e", ".[test]", f"scikit-learn=={version}.*")
    session.run("python", "-c", "import sklearn; print('scikit-learn', sklearn.__version__)")
    # scikit-learn 1.7 and 1.8 give pytest a generator of parameters, which pytest 9 warns of
    ignored = "ignore:Passing a non-Collection iterable"
    session.run("python", "-m", "pytest", "-W", ignored, "tests/estimators/test_sklearn.py", *session.posargs)
