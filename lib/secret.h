/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * secret.h - the shared secret of clients and servers.
 *
 * A secret is the contents of a file that both sides have. It never travels:
 * each side proves that it has it (wire/proof.h).
 */
#ifndef RBX_LIB_SECRET_H
#define RBX_LIB_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/proof.h"

#define RBX_SECRET_BYTES_MIN 16u /* 128 bits, if they are random */
#define RBX_SECRET_BYTES_MAX 4096u

struct rbx_secret {
	size_t length_bytes;
	uint8_t bytes[RBX_SECRET_BYTES_MAX];
};

/*
 * Reads a secret; one newline at the end is not part of it. Returns it to the
 * caller. 0; -ENOENT; -EACCES not readable, or by others too; -EINVAL not a
 * file, too short, too long; -ENOMEM. Sets rbx_last_error().
 */
int rbx_secret_load(const char *path, struct rbx_secret **secret);

/* Wipes and frees. NULL is allowed. */
void rbx_secret_free(struct rbx_secret *secret);

/* NULL: none. Borrows. */
struct rbx_root rbx_root_of_secret(const struct rbx_secret *secret);

/* Unpredictable bytes; nothing goes on without them. */
int rbx_random(void *buf, size_t length_bytes);

#endif
