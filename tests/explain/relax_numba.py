# explain: variable=relax_numba.py:42 line=42 touched=42 fix=parallel-first-touch effect
# A relaxation by numba, whose field numpy sets in the main thread. The loops over prange run on OpenMP's threads. FIXED in
# the environment: such a loop sets the field first. The argument is the number of rows.
import ctypes
import os
import sys

import numba
import numpy as np

COLUMNS = 1024
ROUNDS = 12

# homenode's own function where homenode watches: it tells of the rounds.
round_begins = getattr(ctypes.CDLL(None), "hn_iteration", lambda number: 0)


@numba.njit(parallel=True, cache=True)
def fill(field):
    for row in numba.prange(len(field)):
        for column in range(COLUMNS):
            field[row, column] = 1.0


@numba.njit(parallel=True, cache=True)
def relax(field, sums):
    for row in numba.prange(len(field)):
        total = 0.0
        for column in range(COLUMNS):
            total += field[row, column]
        sums[row] = total


def main(rows, fixed):
    numba.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "4")))
    sums = np.empty(rows)
    if fixed:
        field = np.empty((rows, COLUMNS))
        fill(field)
    else:
        # numpy touches each page here.
        field = np.ones((rows, COLUMNS))
    relax(field, sums)
    for number in range(ROUNDS):
        round_begins(number)
        relax(field, sums)
    round_begins(ROUNDS)
    print(sums[rows // 2])


main(int(sys.argv[1]), "FIXED" in os.environ)
