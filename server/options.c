/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * options.c - the options of a server: defaults and checks.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/server_labels.h"
#include "lib/error.h"
#include "lib/sized.h"
#include "server/state.h"
#include "wire/terms.h"

#define SLAB_BYTES_MIN (64ull << 10)
#define SLAB_BYTES_MAX (1ull << 30)
#define LEASE_MS_MIN 100u

void rbx_server_options_defaults_sized(struct rbx_server_options *options,
				       size_t size_bytes)
{
	static const struct rbx_server_options defaults = {
		.listen = "127.0.0.1:7471",
		.fabric = "auto",
		.gid_index = -1,
		.memory_bytes = 1ull << 30,
		.slab_bytes = 64ull << 20,
		.lease_ms = 60000,
	};

	rbx_sized_fill(options, size_bytes, &defaults, sizeof(defaults));
}

static int slab_check(const struct rbx_server_options *o)
{
	if (o->slab_bytes < SLAB_BYTES_MIN || o->slab_bytes > SLAB_BYTES_MAX ||
	    o->slab_bytes & (o->slab_bytes - 1))
		return rbx_error(-EINVAL,
				 "slab of %llu bytes: take a power of two from "
				 "64K to 1G",
				 (unsigned long long)o->slab_bytes);
	if (o->memory_bytes < o->slab_bytes)
		return rbx_error(-EINVAL,
				 "memory of %llu bytes is less than one slab of "
				 "%llu: lend more, or take smaller slabs",
				 (unsigned long long)o->memory_bytes,
				 (unsigned long long)o->slab_bytes);
	if (o->quota_bytes && o->quota_bytes < o->slab_bytes)
		return rbx_error(-EINVAL,
				 "a quota of %llu bytes is less than one slab "
				 "of %llu: nobody could borrow anything",
				 (unsigned long long)o->quota_bytes,
				 (unsigned long long)o->slab_bytes);
	return 0;
}

static int check(const struct rbx_server_options *o)
{
	if (strnlen(o->listen, sizeof(o->listen)) == sizeof(o->listen) ||
	    strnlen(o->fabric, sizeof(o->fabric)) == sizeof(o->fabric) ||
	    strnlen(o->device, sizeof(o->device)) == sizeof(o->device) ||
	    strnlen(o->secret_file, sizeof(o->secret_file)) ==
		    sizeof(o->secret_file) ||
	    strnlen(o->secrets_file, sizeof(o->secrets_file)) ==
		    sizeof(o->secrets_file) ||
	    strnlen(o->labels, sizeof(o->labels)) == sizeof(o->labels) ||
	    strnlen(o->memory_file, sizeof(o->memory_file)) == sizeof(o->memory_file))
		return rbx_error(-EINVAL, "a text of the options is not terminated");
	if (o->lease_ms < LEASE_MS_MIN || o->lease_ms > RBX_WIRE_LEASE_MS_MAX)
		return rbx_error(-EINVAL,
				 "a lease of %u ms: take %u ms to one hour",
				 o->lease_ms, LEASE_MS_MIN);
	if (!rbx_server_labels_are_good(o->labels))
		return rbx_error(-EINVAL, "labels \"%s\": give NAME=VALUE, with commas between several, and no name twice",
				 o->labels);
	if (o->integrity > RBX_INTEGRITY_TLS)
		return rbx_error(-EINVAL, "integrity of %u: take one of enum rbx_integrity",
				 o->integrity);
	if (o->clients_max > RBX_CLIENTS_MAX)
		return rbx_error(-EINVAL, "%u clients: take 1 to %u",
				 o->clients_max, RBX_CLIENTS_MAX);
	if (o->volumes_max > RBX_KEPT_VOLUMES_MAX)
		return rbx_error(-EINVAL, "%u volumes of one owner: take 1 to %u", o->volumes_max,
				 RBX_KEPT_VOLUMES_MAX);
	return slab_check(o);
}

int rbx_server_options_take(struct rbx_server_options *taken,
			    const struct rbx_server_options *options)
{
	int err;

	rbx_server_options_defaults(taken);
	err = rbx_sized_take("rbx_server_options",
			     offsetof(struct rbx_server_options, message),
			     taken, sizeof(*taken), options);
	return err ? err : check(taken);
}
