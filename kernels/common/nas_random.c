/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "nas_random.h"

void nas_random_fill(uint64_t *state, int32_t count, double *numbers)
{
    for (int32_t i = 0; i < count; i++)
        numbers[i] = nas_random_next(state);
}
