/* nas-bt's description for the shared option parser: C tables are shorter in C.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "adi_about.h"

const struct kernel_about adi_about = {
    .name = "nas-bt",
    .summary = "NAS BT, implicit compressible flow, block-tridiagonal systems",
    .size_meaning = "points an edge",
    .classes_from = "of the NAS Parallel Benchmarks",
    .example = "nas-bt --class W --threads 4 --init serial --next-touch",
    .classes = {{'S', 12, 60}, {'W', 24, 200}, {'A', 64, 200}, {'B', 102, 200}},
    .default_class = 'A',
    .least_size = 8,
    .most_size = 1000,
    .bytes = adi_bytes,
};
