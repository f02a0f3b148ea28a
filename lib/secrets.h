/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * secrets.h - the secrets of a server's clients, by name.
 *
 * A file has a line for each:
 *
 *	# name:secret, and terms in between if the client has some of its own
 *	backup:Zm9vYmFyYmF6cXV4IQ
 *	db-1,quota=64G,volumes=8:c2VjcmV0IG9mIGRiLTEu
 *	ops,admin:c2VjcmV0IG9mIG9wZXJhdG9ycw
 *
 * The name ends at the first colon or comma, which no name has, so the secret may be any text
 * of 16 to 4,096 bytes. Two lines may have the same name: an old and a new secret.
 */
#ifndef RBX_LIB_SECRETS_H
#define RBX_LIB_SECRETS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/limits.h"
#include "wire/proof.h"

#define RBX_SECRETS_OF_NAME_MAX 2u /* an old and a new one */

#define RBX_VOLUMES_NOT_SAID UINT32_MAX

struct rbx_secrets;

/* What a line says between its name and its colon. */
struct rbx_credential_terms {
	uint64_t quota_bytes; /* 0: none of its own */
	uint32_t volumes_max; /* named volumes; or RBX_VOLUMES_NOT_SAID */
	bool is_admin; /* it may list and remove named volumes of others */
};

/* What lines of one name say. */
struct rbx_credential {
	struct rbx_root roots[RBX_SECRETS_OF_NAME_MAX]; /* borrowed from the table */
	uint32_t roots_count; /* 1 or 2 */
	struct rbx_credential_terms terms; /* all lines of a name have the same */
};

/*
 * Reads a file of secrets. A quota may not be below quota_min_bytes. The caller frees it. 0;
 * -ENOENT; -EACCES: not readable, or readable by everybody; -EINVAL: not a file, too long, or
 * a line is not as it must be; -ENOMEM. Sets rbx_last_error(), with the number of the line and
 * nothing that a secret may be.
 */
int rbx_secrets_load(const char *path, uint64_t quota_min_bytes, struct rbx_secrets **secrets);

/* Wipes and frees them. NULL is allowed. */
void rbx_secrets_free(struct rbx_secrets *secrets);

/* Lines with a secret. */
uint32_t rbx_secrets_count(const struct rbx_secrets *secrets);
/* The name and the secret of one of them, both borrowed. index: below the count. */
const char *rbx_secrets_at(const struct rbx_secrets *secrets, uint32_t index,
			   struct rbx_root *root);

/* False: there is none of this name. secrets may be NULL: there are none at all. */
bool rbx_secrets_find(const struct rbx_secrets *secrets, const char name[RBX_CREDENTIAL_BYTES],
		      struct rbx_credential *credential);

#endif
