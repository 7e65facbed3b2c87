"""What tests let workers do. They import this module, and should not have to import much with it."""

import os
import signal
from pathlib import Path

import numpy as np


def count_sent():
    """From now on, count the bytes that this process sends."""
    from distributed.comm.tcp import TCP

    if not hasattr(TCP, "n_sent"):
        write = TCP.write

        async def counting(self, *args, **options):
            n_bytes = await write(self, *args, **options)
            TCP.n_sent += n_bytes
            return n_bytes

        TCP.write = counting
    TCP.n_sent = 0


def get_sent():
    from distributed.comm.tcp import TCP

    return TCP.n_sent


def make_block(number, n_rows):
    return np.random.default_rng(int(number[0])).standard_normal((n_rows, 50))


def die_once(block, marker):
    """Return the block, after the first worker that was asked for one has been killed."""
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def worker_of(block):
    from distributed import get_worker

    assert block.X.shape[1]
    return get_worker().address


def sum_of(block, vector):
    return vector.sum()


def take_rows(block, vector):
    return len(block.X), vector


def sum_of_held(held):
    return held[0] + held[1].sum()
