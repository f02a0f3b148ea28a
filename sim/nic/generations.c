/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* generations.c - see generations.h. */
#include "sim/nic/generations.h"

#include <stdio.h>

static void add_names(char *error)
{
	size_t at = strlen(error);

	for (uint32_t i = 0; i < rbx_nic_generations_count; i++)
		at += (size_t)snprintf(error + at, RBX_NIC_ERROR_MAX - at,
				       "%s%s", i ? ", " : "; there are ",
				       rbx_nic_generations[i].name);
}

int rbx_nic_generation_find(const char *name, struct rbx_nic_params *params,
			    char *error)
{
	int err;

	for (uint32_t i = 0; i < rbx_nic_generations_count; i++) {
		const struct rbx_nic_generation *one = &rbx_nic_generations[i];

		if (!strcmp(one->name, name))
			return rbx_nic_params_parse(one->text, name, params,
						    error);
	}
	err = rbx_nic_params_read(name, params, error);
	if (err == -ENOENT && strlen(error) < RBX_NIC_ERROR_MAX / 2)
		add_names(error);
	return err;
}
