/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * credentials.h - the secrets that a server accepts: one without a name, and those of the
 * file of secrets. A reload replaces them all.
 */
#ifndef RBX_SERVER_CREDENTIALS_H
#define RBX_SERVER_CREDENTIALS_H

#include "include/rdmabox/server.h"
#include "lib/secret.h"
#include "lib/secrets.h"

struct rbx_credentials {
	struct rbx_secret *unnamed; /* NULL: none */
	struct rbx_secrets *named; /* NULL: none */
	struct rbx_key decoy; /* random: takes the place of a secret that there is not */
};

/* Whether the options name a file with secrets. */
static inline bool rbx_credentials_are_wanted(const struct rbx_server_options *options)
{
	return options->secret_file[0] || options->secrets_file[0];
}

/* Reads the files of the options. 0 or -errno with rbx_last_error(); then there is nothing to
 * free. */
int rbx_credentials_load(const struct rbx_server_options *options,
			 struct rbx_credentials *credentials);

/* Wipes and frees them. */
void rbx_credentials_free(struct rbx_credentials *credentials);

static inline bool rbx_credentials_are_any(const struct rbx_credentials *credentials)
{
	return credentials->unnamed || credentials->named;
}

/* One secret after another, with its name: *at is 0 at first. False: there are no more. */
bool rbx_credentials_next(const struct rbx_credentials *credentials, uint32_t *at,
			  const char **name, struct rbx_root *root);

/*
 * The credential of a name. Without any secret the unnamed one is empty. All roots are filled
 * in: from roots_count on they are decoys, so that a proof takes as long for a name that there
 * is not.
 */
void rbx_credentials_find(const struct rbx_credentials *credentials,
			  const char name[RBX_CREDENTIAL_BYTES],
			  struct rbx_credential *credential);

#endif
