/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sized.h - public structs whose first field, a size_t, is their size.
 *
 * Such structs grow at the end, so the program and the library may know different
 * lengths. Fields that an older program does not have keep their defaults. A newer
 * program may pass a longer struct if the rest is zero, which asks for nothing.
 */
#ifndef RBX_LIB_SIZED_H
#define RBX_LIB_SIZED_H

#include <stddef.h>

/* A greater size is taken for uninitialised memory. */
#define RBX_SIZED_BYTES_MAX 65536u

/* Writes the defaults into a program's struct of to_bytes. */
void rbx_sized_fill(void *to, size_t to_bytes, const void *defaults,
		    size_t defaults_bytes);

/*
 * Copies a program's struct over the defaults in *to, except its size field. first_bytes:
 * the length of the first version. 0, or -EINVAL with rbx_last_error(), in which `what`
 * is the name of the struct.
 */
int rbx_sized_take(const char *what, size_t first_bytes, void *to,
		   size_t to_bytes, const void *from);

/* Copies numbers into a program's struct, as many as fit. Sets its size field to the
 * bytes that were filled; the rest is zero. */
void rbx_sized_give(void *to, size_t to_bytes, const void *from, size_t from_bytes);

#endif
