"""BLAS on one thread."""

from functools import cache
from threading import Lock, local
from types import TracebackType
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def blas_libraries() -> list[Any]:
    """The libraries that are loaded; finding them takes longer than a small fit."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


class OneThread:
    """While somebody is inside, BLAS keeps to one thread.

    MKL, and whatever counts by OpenMP, has a number of threads for each thread that calls it: each
    gets its own back. The others have one for the process. There the first who enters notes it and
    the last who leaves restores it; if everybody restored what he found, a thread that ends would
    give BLAS its threads back while another still runs.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_inside = 0
        self._of_process: list[int] = []
        self._of_thread = local()

    def __enter__(self) -> None:
        with self._lock:
            counts = [library.num_threads for library in blas_libraries()]
            self._of_thread.counts = [*getattr(self._of_thread, "counts", []), counts]
            if self._n_inside == 0:
                self._of_process = counts
            self._n_inside += 1
            for library in blas_libraries():
                library.set_num_threads(1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._n_inside -= 1
            own = self._of_thread.counts.pop()
            for library, mine, common in zip(blas_libraries(), own, self._of_process, strict=True):
                if _counts_by_thread(library):
                    library.set_num_threads(mine)
                elif self._n_inside == 0:
                    library.set_num_threads(common)
                if hasattr(library, "clear_controlling_thread"):
                    # since threadpoolctl 3.8 only who set a number may set it again, unless he resigns
                    library.clear_controlling_thread()


def _counts_by_thread(library: Any) -> bool:
    return library.internal_api == "mkl" or getattr(library, "threading_layer", "") == "openmp"


one_blas_thread = OneThread()
