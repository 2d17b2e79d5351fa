# explain: variable=blur.py:42 line=42 touched=42 fix=parallel-first-touch effect
# A blur by numpy, whose image the main thread makes. Each worker blurs its own rows in each round. FIXED in the environment:
# each worker sets its rows first. The arguments are rows and workers.
import ctypes
import os
import sys
import threading

import numpy as np

COLUMNS = 1024
ROUNDS = 24

# homenode's own function where homenode watches: it tells of the rounds.
round_begins = getattr(ctypes.CDLL(None), "hn_iteration", lambda number: 0)


def part(number, workers, rows):
    return slice(number * rows // workers, (number + 1) * rows // workers)


def blur(worker, workers, image, out, barrier, fixed):
    own = part(worker, workers, len(image))
    if fixed:
        image[own] = 1.0
    barrier.wait()
    for number in range(ROUNDS):
        if worker == 0:
            round_begins(number)
        np.multiply(image[own, 1:-1], 0.25, out=out[own, 1:-1])
        np.add(image[own, 2:], out[own, 1:-1], out=out[own, 1:-1])
        barrier.wait()
    if worker == 0:
        round_begins(ROUNDS)


def main(rows, workers, fixed):
    if fixed:
        image = np.empty((rows, COLUMNS))
    else:
        # numpy touches each page here.
        image = np.ones((rows, COLUMNS))
    out = np.empty((rows, COLUMNS))
    barrier = threading.Barrier(workers)
    each = [(n, workers, image, out, barrier, fixed) for n in range(workers)]
    threads = [threading.Thread(target=blur, args=words) for words in each]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(out[rows // 2, COLUMNS // 2])


main(int(sys.argv[1]), int(sys.argv[2]), "FIXED" in os.environ)
