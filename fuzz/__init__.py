"""A fuzz campaign: generated cases, judged by oracles. `python -m fuzz --cases 10000`."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before scipy is imported: scikit-learn asks for it

from fuzz.case import Case
from fuzz.families import FAMILIES, make_case
from fuzz.judge import judge

__all__ = ["FAMILIES", "Case", "judge", "make_case"]
