"""
A table with groups, mandatory columns and signs
================================================

Tables have columns of all kinds: numbers, categories, columns that have to be in the model. Here a pipeline
prepares a table of customers. The one-hot columns of a category enter and leave together, one column is
always in, and the coefficient of one column may only have one sign.

The table is simulated, and the truth is known: customers leave depending on the contract, the number of calls
to support, how long they have been with the company, and the price.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from kmargin import SparseSVC
from kmargin.displays.palette import NEGATIVE, POSITIVE, SERIES

rng = np.random.default_rng(0)
n = 800
table = pd.DataFrame(
    {
        "age": rng.integers(18, 80, n),
        "months": rng.gamma(2.0, 14.0, n).round(),
        "price": rng.normal(60.0, 20.0, n).round(2),
        "calls": rng.poisson(1.5, n),
        "visits": rng.poisson(9.0, n),
        "contract": rng.choice(["monthly", "one year", "two years"], n, p=[0.5, 0.3, 0.2]),
        "payment": rng.choice(["card", "invoice", "transfer", "wallet"], n),
        "region": rng.choice(["north", "east", "south", "west", "islands"], n),
    }
)
push = table["contract"].map({"monthly": 1.0, "one year": -0.4, "two years": -1.4})
push += 0.5 * table["calls"] - 0.03 * table["months"] + 0.02 * (table["price"] - 60)
leaves = np.where(push + rng.logistic(0.0, 0.5, n) > 0.3, "leaves", "stays")

# %%
# The transformer returns a data frame, so columns keep their names, and the model can refer to them by name.
# Columns called ``contract_...`` form one group; a numeric column is a group of its own.

numbers = ["age", "months", "price", "calls", "visits"]
categories = ["contract", "payment", "region"]
prepare = make_column_transformer(
    (StandardScaler(), numbers),
    (OneHotEncoder(sparse_output=False), categories),
    verbose_feature_names_out=False,
).set_output(transform="pandas")
columns = prepare.fit(table).get_feature_names_out()
groups = [name.split("_")[0] for name in columns]
print(dict(zip(columns, groups, strict=True)))

# %%
# k counts groups. The age is always in the model, because the department asks for it, and counts in k. The
# number of calls may only make it more likely that a customer leaves: the first class is ``leaves``, so its
# sign is negative.


def make_model(k):
    machine = SparseSVC(k=k, C=0.1, groups=groups, keep=["age"], signs={"calls": -1})
    return make_pipeline(prepare, machine)


ks = [1, 2, 3, 4, 5, 6, 8]
scores = [cross_val_score(make_model(k), table, leaves, cv=5).mean() for k in ks]
model = make_model(5).fit(table, leaves)
summary = model[-1].summary()
print(summary.to_string(index=False, float_format="{:+.3f}".format))
found = set(summary["group"])
assert found == {"age", "contract", "calls", "months", "price"}

# %%
# Five groups are enough. The age is in the model with a negligible coefficient, as it should be.

fig, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.9), layout="constrained", width_ratios=[1, 1.25])
left.plot(ks, scores, **SERIES[0]._asdict())
left.set(xlabel="k, the number of groups", ylabel="accuracy (cross-validated)", xticks=ks)
colours = np.where(summary["coef"] > 0, POSITIVE, NEGATIVE)
labels = summary["feature"].where(~summary["always_in"], summary["feature"] + " (always in)")
right.barh(labels, summary["coef"], color=colours)
right.axvline(0, color="black", lw=0.8)
right.invert_yaxis()
right.set(xlabel="coefficient: left favours leaving, right staying")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
