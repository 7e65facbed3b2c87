"""Nesterov acceleration, apart from what it accelerates."""

from kmargin.types import Vector

# the `r` of (j - 1)/(j + r - 1); 3 is the smallest value with the optimal rate (Su, Boyd, Candes)
FRICTION = 3


class Momentum:
    """Carries each update a little further along the last change.

    The first `delay` updates pass unchanged, so that the iteration reaches a neighbourhood of the
    minimum before it is hurried.
    """

    def __init__(self, start: Vector, delay: int) -> None:
        self.previous = start  # the last update, before it was extrapolated
        self.delay = delay
        self.n_updates = 0
        self.age = 1  # the paper's j: updates since the last restart

    def extrapolate(self, update: Vector) -> Vector:
        self.n_updates += 1
        carried = update
        if self.n_updates > self.delay:
            carried = update + (self.age - 1) / (self.age + FRICTION - 1) * (update - self.previous)
            self.age += 1
        self.previous = update
        return carried

    def restart(self) -> None:
        """Forget the speed; called when the objective has risen."""
        self.age = 1
