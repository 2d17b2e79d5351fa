/* What the C and the Fortran parts of NAS BT and SP tell each other.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef ADI_ABOUT_H
#define ADI_ABOUT_H

#include "options.h"

/* Of the program that is linked. */
extern const struct kernel_about adi_about;

double adi_bytes(int64_t size, int letter);

#endif
