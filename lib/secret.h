/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * secret.h - the secret that clients and servers share.
 *
 * A secret is the contents of a file that both sides have. It is never sent: each side
 * proves that it has it (wire/proof.h).
 */
#ifndef RBX_LIB_SECRET_H
#define RBX_LIB_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/proof.h"

#define RBX_SECRET_BYTES_MIN 16u /* 128 bits, if they are random */
#define RBX_SECRET_BYTES_MAX 4096u

struct rbx_secret {
	size_t length_bytes;
	uint8_t bytes[RBX_SECRET_BYTES_MAX];
};

/*
 * Reads a secret. A newline at the end is not part of it. The caller frees it. 0;
 * -ENOENT; -EACCES: not readable, or readable by everybody; -EINVAL: not a file, too
 * short or too long, or all of one byte; -ENOMEM. Sets rbx_last_error().
 */
int rbx_secret_load(const char *path, struct rbx_secret **secret);

/*
 * Opens a file with secrets, and tells how long it is. Returns its descriptor, or as
 * rbx_secret_load(): -ENOENT, -EACCES, -EINVAL. Sets rbx_last_error().
 */
int rbx_secret_open(const char *path, uint64_t *file_bytes);

/* Returns how many bytes there were, at most size, or -errno. */
ssize_t rbx_secret_read(int fd, void *buf, size_t size);

/* What is wrong with these bytes as a secret, as "is too short: ..."; NULL: nothing. */
const char *rbx_secret_wrong(const void *bytes, size_t length);

/* Wipes the secret and frees it. NULL is allowed. */
void rbx_secret_free(struct rbx_secret *secret);

/* Borrows the secret. NULL: there is none. */
struct rbx_root rbx_root_of_secret(const struct rbx_secret *secret);

/* Fills buf with unpredictable bytes, or fails. */
int rbx_random(void *buf, size_t length_bytes);

#endif
