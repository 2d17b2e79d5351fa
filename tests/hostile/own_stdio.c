/* Streams and folders, whose buffers the C library gets from the program's own allocator. */
#include "allocator.h"

#include "stdio.c"
