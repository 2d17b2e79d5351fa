/* Order of accuracy in space and time, and positive definiteness.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef I_CG_ORDER_H
#define I_CG_ORDER_H

#include "options.h"

/* Prints a table and the line of verification; gives the exit status. */
int verify_order(const struct kernel_options *options);

#endif
