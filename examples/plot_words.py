"""
Words that distinguish two subjects
===================================

Text becomes a sparse matrix with a column for each word, which can be fitted directly: a model with k = 10
selects the ten words that best predict which of two subjects a text is about.

The texts here are available wherever kmargin runs: the docstrings of SciPy's functions for statistics and for
signal processing.
"""

import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
import scipy.signal
import scipy.stats
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from kmargin import SparseSVC
from kmargin.displays.palette import NEGATIVE, POSITIVE, SOLVERS


def read_texts(module):
    """Docstrings of the functions and classes of a module, without examples and references."""
    things = [getattr(module, name) for name in module.__all__]
    things = [thing for thing in things if inspect.isfunction(thing) or inspect.isclass(thing)]
    texts = [inspect.getdoc(thing) or "" for thing in things]
    return [re.split(r"(?:Examples|References)\n---|\*\*Array API", text)[0] for text in texts if text]


signals, statistics = read_texts(scipy.signal), read_texts(scipy.stats)
texts = signals + statistics
subject = np.repeat(["signals", "statistics"], [len(signals), len(statistics)])
print(f"{len(signals)} texts about signals, {len(statistics)} about statistics")

# %%
# To use two newsgroups instead (this needs a network), only these lines change::
#
#     from sklearn.datasets import fetch_20newsgroups
#     news = fetch_20newsgroups(categories=["sci.med", "sci.space"], remove=("headers", "footers", "quotes"))
#     texts, subject = news.data, np.array(news.target_names)[news.target]
#
# Words have to occur in at least five texts. The names of the modules themselves are left out.

words = TfidfVectorizer(min_df=5, token_pattern=r"[a-z]{3,}", stop_words=["scipy", "signal", "stats"])
X = words.fit_transform(texts)
print(f"{X.shape[0]} x {X.shape[1]}, {X.nnz / np.prod(X.shape):.1%} nonzero, stored as {X.format}")

# %%
# How many words does it take? Each fold has its own vocabulary. Some words only occur together, such as
# "monte" and "carlo": one of them is used.

ks = [1, 2, 5, 10, 20, 50, 100]
pipelines = [make_pipeline(words, SparseSVC(k=k, C=10.0)) for k in ks]
scores = [cross_val_score(pipeline, texts, subject).mean() for pipeline in pipelines]
model = SparseSVC(k=10, C=10.0).fit(X, subject)
chosen, weights = words.get_feature_names_out()[model.support_], model.coef_[0, model.support_]
order = np.argsort(weights)

fig, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.9), layout="constrained")
left.barh(chosen[order], weights[order], color=np.where(weights[order] > 0, POSITIVE, NEGATIVE))
left.axvline(0, color="black", lw=0.8)
left.set(xlabel="coefficient: left favours signals, right statistics")
right.plot(ks, scores, **SOLVERS["kmargin"]._asdict())
right.set(xscale="log", xlabel="k, the number of words", ylabel="accuracy (cross-validated)")
right.set_xticks(ks, [str(k) for k in ks])
right.minorticks_off()
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
