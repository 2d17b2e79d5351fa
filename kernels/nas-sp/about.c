/* nas-sp's description for the shared option parser: C tables are shorter in C.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "adi_about.h"

const struct kernel_about adi_about = {
    .name = "nas-sp",
    .summary = "NAS SP, implicit compressible flow, scalar pentadiagonal systems",
    .size_meaning = "points an edge",
    .classes_from = "of the NAS Parallel Benchmarks",
    .example = "nas-sp --class W --threads 4 --init serial --next-touch",
    .classes = {{'S', 12, 100}, {'W', 36, 400}, {'A', 64, 400}, {'B', 102, 400}},
    .default_class = 'A',
    .least_size = 8,
    .most_size = 1000,
    .bytes = adi_bytes,
};
