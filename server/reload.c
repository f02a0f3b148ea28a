/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reload.c - gives a running server new limits and new secrets.
 *
 * Everything is checked before anything changes. Then all changes at once, under the
 * lock. The tables have room for RBX_LENT_SLABS_MAX slabs from the start, so a limit is
 * only a number. If more is lent than a lowered limit allows, rbx_pressure_tick() asks
 * for slabs as long as there are too many, including slabs that are not ready yet.
 *
 * A session has its own key, which was made when it began. So new secrets are for new
 * sessions. Existing ones go on, and can be resumed, even if their credential is gone.
 */
#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "lib/guard.h"
#include "lib/integrity.h"
#include "server/state.h"

static const char *what_else_changes(const struct rbx_server_options *is,
				     const struct rbx_server_options *wanted)
{
	if (strcmp(is->listen, wanted->listen))
		return "listen (--listen)";
	if (strcmp(is->fabric, wanted->fabric))
		return "fabric (--fabric)";
	if (strcmp(is->device, wanted->device))
		return "device (--device)";
	if (is->gid_index != wanted->gid_index)
		return "gid_index";
	if (is->slab_bytes != wanted->slab_bytes)
		return "slab_bytes (--slab)";
	if (is->lease_ms != wanted->lease_ms)
		return "lease_ms (--lease)";
	if (is->clients_max != wanted->clients_max)
		return "clients_max (--clients)";
	if (strcmp(is->memory_file, wanted->memory_file))
		return "memory_file (--memory-file)";
	if (is->small_pages != wanted->small_pages)
		return "small_pages (--small-pages)";
	if (is->integrity != wanted->integrity)
		return "integrity (--integrity)";
	/* Clients have placed replicas by them. */
	if (strcmp(is->labels, wanted->labels))
		return "labels (--label)";
	if (is->insecure != wanted->insecure)
		return "insecure (--insecure)";
	/* Sessions that began without a secret could not resume with one. */
	if (rbx_credentials_are_wanted(is) != rbx_credentials_are_wanted(wanted))
		return "whether there is a secret";
	return NULL;
}

static void take_over(struct rbx_server *s, const struct rbx_server_options *o,
		      struct rbx_credentials *credentials)
{
	struct rbx_credentials former = s->credentials;

	s->options.memory_bytes = o->memory_bytes;
	s->options.quota_bytes = o->quota_bytes;
	s->options.volumes_max = o->volumes_max;
	s->options.overcommit = o->overcommit;
	memcpy(s->options.secret_file, o->secret_file, sizeof(o->secret_file));
	memcpy(s->options.secrets_file, o->secrets_file, sizeof(o->secrets_file));
	s->credentials = *credentials;
	*credentials = former;
	rbx_tls_keys_add(s);
	rbx_lender_set_lend_max(s->lender, rbx_slabs_of_memory(o));
	rbx_owners_set_limits(s);
	s->pressure_checked_ns = 0; /* so that surplus slabs are asked for at once */
	rbx_borrowing_go_on(s);
}

int rbx_server_reload(struct rbx_server *s, const struct rbx_server_options *options)
{
	struct rbx_server_stats now;
	struct rbx_credentials credentials;
	struct rbx_server_options wanted;
	const char *else_changes;
	int err;

	if (!s || !options)
		return rbx_error(-EINVAL, "server and options must be given");
	err = rbx_guard_thread("rbx_server_reload");
	if (!err)
		err = rbx_server_options_take(&wanted, options);
	if (err)
		return err;
	else_changes = what_else_changes(&s->options, &wanted);
	if (else_changes)
		return rbx_error(-EINVAL, "%s cannot change while the server runs: "
				 "leave it as it was, or restart the server",
				 else_changes);
	rbx_server_stats_get(s, &now);
	err = rbx_memory_check(s, &wanted, now.lent_bytes);
	if (!err)
		err = rbx_descriptors_reserve(s, &wanted);
	if (!err)
		err = rbx_credentials_load(&wanted, &credentials);
	if (err)
		return err;
	pthread_mutex_lock(&s->lock);
	err = rbx_remembered_make_room(s, &wanted);
	if (!err)
		take_over(s, &wanted, &credentials);
	pthread_mutex_unlock(&s->lock);
	rbx_control_thread_wake(s);
	rbx_credentials_free(&credentials);
	return err;
}
