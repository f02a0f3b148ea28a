/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sized.h - public structs whose first field, a size_t, is their size.
 *
 * They grow at the end, so the program and the library may know different lengths
 * of one. What an older program does not have keeps its default. A newer program
 * may be longer by zeros, which ask for nothing.
 */
#ifndef RBX_LIB_SIZED_H
#define RBX_LIB_SIZED_H

#include <stddef.h>

/* Longer is none: it is what lay there before. */
#define RBX_SIZED_BYTES_MAX 65536u

/* Fills in the defaults of a program's struct of to_bytes. */
void rbx_sized_fill(void *to, size_t to_bytes, const void *defaults,
		    size_t defaults_bytes);

/*
 * Copies a program's struct over the defaults that are there, but for its size.
 * first_bytes: the length of its first version. 0, or -EINVAL with
 * rbx_last_error(), where `what` names the struct.
 */
int rbx_sized_take(const char *what, size_t first_bytes, void *to,
		   size_t to_bytes, const void *from);

/* Copies numbers into a program's struct, as many as it has room for; its size
 * says then how many bytes they are. */
void rbx_sized_give(void *to, const void *from, size_t from_bytes);

#endif
