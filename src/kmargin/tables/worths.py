"""What each feature of a table's model is worth, and what could take its place."""

import numpy as np

from kmargin.fitting.kernel_blueprint import KernelBlueprint
from kmargin.fitting.stand_ins import Worth, find_stand_ins
from kmargin.tables.model import TableModel
from kmargin.tables.trial import Trial

MOST = 40  # units; the stand-ins of more are not looked for


def find_worths(trial: Trial, model: TableModel) -> dict[str, Worth]:
    """What each unit of a model fitted to all rows is worth, by its label.

    Nothing for kernel machines, where machines have features of their own, and where units are many.
    """
    blueprint, machine = trial.blueprint, model.machine
    alone = len(model.machine_names) == 1
    if isinstance(blueprint, KernelBlueprint) or not (blueprint.shared or alone) or trial.is_large:
        return {}
    labels = trial.counted.labels
    heaviest = np.argsort(-np.abs(machine.coef_).max(axis=0), kind="stable")
    used = [int(j) for j in heaviest if machine.coef_[:, j].any()]
    if len({labels[j] for j in used}) > MOST:
        return {}
    samples = trial.samples._replace(X=model.scaling(trial.samples.X))
    found = find_stand_ins(blueprint, samples, float(machine.C), np.array(used, np.intp), trial.procedure)
    return {labels[int(worth.columns[0])]: worth for worth in found}
