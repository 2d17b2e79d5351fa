# explain: variable=clusters_sklearn.py:16 line=16 touched=16 fix=parallel-first-touch
# scikit-learn's k-means, whose points numpy sets in the main thread. Each round deals the points to OpenMP's threads. The
# argument is the number of points.
import sys

import numpy as np
from sklearn.cluster import KMeans

FEATURES = 16
CLUSTERS = 8
ROUNDS = 8


def main(points):
    # numpy touches each page here.
    data = np.arange(points * FEATURES, dtype=np.float64).reshape(points, FEATURES)
    start = data[:: points // CLUSTERS][:CLUSTERS].copy()
    found = KMeans(CLUSTERS, init=start, n_init=1, max_iter=ROUNDS, tol=0, algorithm="lloyd", copy_x=False)
    found.fit(data)
    print(found.inertia_)


main(int(sys.argv[1]))
