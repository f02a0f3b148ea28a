/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * credentials.c - loads and finds the secrets that a server accepts (credentials.h).
 */
#include "server/credentials.h"

#include <string.h>

int rbx_credentials_load(const struct rbx_server_options *options,
			 struct rbx_credentials *out)
{
	struct rbx_credentials loaded = { 0 };
	int err = rbx_random(&loaded.decoy, sizeof(loaded.decoy));

	if (!err && options->secret_file[0])
		err = rbx_secret_load(options->secret_file, &loaded.unnamed);
	if (!err && options->secrets_file[0])
		err = rbx_secrets_load(options->secrets_file, options->slab_bytes,
				       &loaded.named);
	if (err)
		rbx_credentials_free(&loaded);
	else
		*out = loaded;
	return err;
}

void rbx_credentials_free(struct rbx_credentials *credentials)
{
	rbx_secret_free(credentials->unnamed);
	rbx_secrets_free(credentials->named);
	*credentials = (struct rbx_credentials){ 0 };
}

bool rbx_credentials_next(const struct rbx_credentials *credentials, uint32_t *at,
			  const char **name, struct rbx_root *root)
{
	uint32_t unnamed = credentials->unnamed != NULL, i = (*at)++;

	if (i < unnamed) {
		*name = "";
		*root = rbx_root_of_secret(credentials->unnamed);
		return true;
	}
	if (!credentials->named || i - unnamed >= rbx_secrets_count(credentials->named))
		return false;
	*name = rbx_secrets_at(credentials->named, i - unnamed, root);
	return true;
}

void rbx_credentials_find(const struct rbx_credentials *credentials,
			  const char name[RBX_CREDENTIAL_BYTES],
			  struct rbx_credential *credential)
{
	*credential = (struct rbx_credential){ .terms.volumes_max = RBX_VOLUMES_NOT_SAID };
	if (name[0])
		rbx_secrets_find(credentials->named, name, credential);
	else if (credentials->unnamed || !credentials->named)
		credential->roots[credential->roots_count++] =
			rbx_root_of_secret(credentials->unnamed);
	for (uint32_t i = credential->roots_count; i < RBX_SECRETS_OF_NAME_MAX; i++)
		credential->roots[i] = rbx_root_of_key(&credentials->decoy);
}
