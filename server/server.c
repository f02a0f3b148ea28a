/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server.c - starts, drains and stops a server (include/rdmabox/server.h).
 *
 * A start that fails leaves nothing behind. The function that ends a server also cleans
 * up after a failed start: it frees each part only if it is there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "include/rdmabox/rdmabox.h"
#include "lib/error.h"
#include "lib/guard.h"
#include "lib/integrity.h"
#include "lib/loopback.h"
#include "lib/sized.h"
#include "server/huge_pages.h"
#include "server/state.h"

/* Without a secret, or with integrity=off, it has to be loopback. */
static int address_check(const struct rbx_server *s, const char *address)
{
	bool is_off = s->options.integrity == RBX_INTEGRITY_OFF, is_loopback;
	int err;

	if ((rbx_credentials_are_any(&s->credentials) && !is_off) || s->options.insecure)
		return 0;
	err = rbx_address_is_loopback(address, &is_loopback);
	if (err)
		return rbx_error(-EINVAL, "cannot listen on %s: %s",
				 s->options.listen, rbx_last_error());
	if (!is_loopback && is_off)
		return rbx_error(-EPERM, "%s can be reached from other machines, and integrity=off is for one machine: use integrity=mac or tls (--integrity)",
				 s->options.listen);
	if (!is_loopback)
		return rbx_error(-EPERM,
				 "%s can be reached from other machines and "
				 "there is no secret: give a secret file "
				 "(--secret-file), or insecure (--insecure) if "
				 "everybody may use this memory",
				 s->options.listen);
	return 0;
}

/* The address is looked at early, for an answer before anything is made; and once more
 * as it is bound (device_listen()), which decides: a name may mean another by then. */
static int secrets_load(struct rbx_server *s)
{
	int err = rbx_credentials_load(&s->options, &s->credentials);

	return err ? err : address_check(s, s->options.listen);
}

static int lender_make(struct rbx_server *s)
{
	const struct rbx_lender_config config = {
		.slabs_count = RBX_LENT_SLABS_MAX,
		.lend_max = rbx_slabs_of_memory(&s->options),
		.owners_max = RBX_OWNERS_MAX,
		.lease_ns = s->options.lease_ms * 1000000ull,
		.clients_max = s->clients_max,
		.volumes_max = RBX_KEPT_VOLUMES_MAX,
	};
	void *memory = malloc(rbx_lender_size(&config));
	int err;

	if (!memory)
		return rbx_error(-ENOMEM, "no memory for the table of slabs");
	s->lender = rbx_lender_init(memory, &config);
	s->slabs = calloc(RBX_LENT_SLABS_MAX, sizeof(*s->slabs));
	if (!s->slabs)
		return rbx_error(-ENOMEM, "no memory for the table of slabs");
	err = rbx_owners_init(s);
	if (!err)
		err = rbx_workers_init(s);
	return err ? err : rbx_descriptors_reserve(s, &s->options);
}

/* For the line at the start: slabs use huge pages as long as there are some. */
static void pages_describe(const struct rbx_server *s, char *text, size_t size_bytes)
{
	uint64_t slab_bytes = s->options.slab_bytes;
	uint64_t free_bytes = rbx_huge_pages_free() * RBX_HUGE_PAGE_BYTES;

	text[0] = '\0';
	if (s->options.small_pages || rbx_remembers(&s->remembered) ||
	    slab_bytes % RBX_HUGE_PAGE_BYTES || free_bytes < slab_bytes)
		return;
	snprintf(text, size_bytes, "; huge pages for %llu slabs",
		 (unsigned long long)RBX_MIN(free_bytes / slab_bytes,
					     s->options.memory_bytes / slab_bytes));
}

void rbx_tls_keys_add(struct rbx_server *s)
{
	struct rbx_tls_key key;
	struct rbx_root root;
	const char *name;
	uint32_t at = 0;

	if (s->fabric.options.tls == RBX_TLS_NEVER)
		return;
	while (rbx_credentials_next(&s->credentials, &at, &name, &root)) {
		rbx_tls_key_of_root(root, name, &key);
		s->fabric.ops->add_tls_key(s->device, &key);
	}
	explicit_bzero(&key, sizeof(key));
}

/* The device is opened with one of the keys, and gets the others afterwards. */
static int integrity_choose(struct rbx_server *s, struct rbx_tls_key *key)
{
	struct rbx_root root;
	const char *name;
	uint32_t at = 0;
	bool has_key = rbx_credentials_next(&s->credentials, &at, &name, &root);

	if (has_key)
		rbx_tls_key_of_root(root, name, key);
	return rbx_integrity_choose(s->options.integrity, has_key ? key : NULL, &s->fabric);
}

static int device_open(struct rbx_server *s)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_tls_key key;
	char pages[64];
	int err;

	err = rbx_fabric_choose(s->options.fabric, s->options.device,
				s->options.gid_index, s->options.listen,
				&s->fabric);
	if (!err)
		err = integrity_choose(s, &key);
	if (err)
		return err;
	err = s->fabric.ops->open(&s->fabric.options, &s->device, error);
	explicit_bzero(&key, sizeof(key));
	s->fabric.options.tls_key = NULL;
	if (err) {
		s->device = NULL;
		return rbx_error(err, "cannot open a %s device: %s",
				 s->fabric.ops->name, error);
	}
	rbx_tls_keys_add(s);
	pages_describe(s, pages, sizeof(pages));
	snprintf(s->description, sizeof(s->description), "%s; %s%s",
		 s->device->caps.description, s->fabric.why, pages);
	return 0;
}

static int device_listen(struct rbx_server *s)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	int err;

	err = s->fabric.ops->create_cq(s->device, RBX_COMPLETIONS_OF(s->clients_max),
				       &s->cq, error);
	if (err) {
		s->cq = NULL;
		return rbx_error(err, "cannot make a completion queue: %s",
				 error);
	}
	err = rbx_tables_begin(s);
	if (err)
		return err;
	err = s->fabric.ops->listen(s->device, s->options.listen, &s->listener,
				    error);
	if (err) {
		s->listener = NULL;
		return rbx_error(err, "%s", error);
	}
	return address_check(s, s->listener->address);
}

static void client_end(struct rbx_server *s, struct rbx_client *client)
{
	struct rbx_user_message_ends ends;

	rbx_data_qps_end(s, client);
	if (client->connection)
		rbx_connection_end(s, client->connection);
	rbx_mailbox_end(&client->mailbox, -ECANCELED, &ends);
	explicit_bzero(&client->key, sizeof(client->key));
	explicit_bzero(&client->connection_key, sizeof(client->connection_key));
	rbx_user_message_ends_tell(&ends);
}

/* Frees all but the control thread, which has ended or was never started. 0, or -errno with
 * rbx_last_error(): the memory file is not whole. */
static int server_destroy(struct rbx_server *s)
{
	uint32_t i;
	int err;

	rbx_workers_stop(s);
	if (s->listener)
		s->fabric.ops->close_listener(s->listener);
	for (i = 0; i < s->clients_used; i++)
		if (s->clients[i].session_id)
			client_end(s, &s->clients[i]);
	rbx_half_open_end_all(s);
	rbx_workers_destroy(s);
	for (i = 0; i < s->clients_used; i++)
		if (s->clients[i].own.domain)
			s->fabric.ops->destroy_domain(s->clients[i].own.domain);
	rbx_volumes_destroy(s);
	if (s->cq)
		s->fabric.ops->destroy_cq(s->cq);
	rbx_tables_destroy(s);
	if (s->device)
		s->fabric.ops->close(s->device);
	err = rbx_remembered_close(s);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	pthread_cond_destroy(&s->workers.wanted);
	pthread_mutex_destroy(&s->workers.lock);
	pthread_cond_destroy(&s->slab_ended);
	pthread_mutex_destroy(&s->lock);
	rbx_credentials_free(&s->credentials);
	rbx_owners_destroy(s);
	free(s->slabs);
	free(s->lender);
	free(s);
	return err;
}

static void locks_init(struct rbx_server *s)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->workers.lock, NULL);
	pthread_cond_init(&s->workers.wanted, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->slab_ended, &attr);
	pthread_condattr_destroy(&attr);
}

static int server_prepare(struct rbx_server *s)
{
	int err;

	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake_fd < 0)
		return rbx_error(-errno, "cannot make an eventfd: %s",
				 strerror(errno));
	err = rbx_random(&s->incarnation, sizeof(s->incarnation));
	s->incarnation |= 1; /* never 0 */
	if (!err)
		err = rbx_remembered_open(s);
	if (!err)
		err = rbx_memory_check(s, &s->options, 0);
	if (!err)
		err = secrets_load(s);
	if (!err)
		err = device_open(s);
	if (!err)
		err = rbx_tables_init(s);
	if (!err)
		err = rbx_volumes_init(s);
	if (!err)
		err = lender_make(s);
	if (!err)
		err = rbx_remembered_restore(s);
	if (!err)
		err = device_listen(s);
	if (!err)
		err = rbx_workers_start(s);
	if (!err)
		err = rbx_remembered_begin(s);
	return err;
}

int rbx_server_start(struct rbx_server **server,
		     const struct rbx_server_options *options)
{
	struct rbx_server_options taken;
	struct rbx_server *s;
	int err;

	if (!server || !options)
		return rbx_error(-EINVAL, "server and options must be given");
	err = rbx_server_options_take(&taken, options);
	if (err)
		return err;
	s = calloc(1, sizeof(*s));
	if (!s)
		return rbx_error(-ENOMEM, "no memory for a server");
	s->options = taken;
	s->log = (struct rbx_log){ taken.log, taken.user };
	s->hostile.log = &s->log;
	s->remembered.file.fd = -1;
	s->started_ns = rbx_now_ns();
	locks_init(s);
	err = server_prepare(s);
	if (!err) {
		err = -pthread_create(&s->thread, NULL, rbx_control_thread, s);
		if (err)
			rbx_error(err, "cannot start a thread: %s",
				  strerror(-err));
	}
	if (err)
		(void)server_destroy(s);
	else
		*server = s;
	return err;
}

const char *rbx_server_address(const struct rbx_server *server)
{
	return server->listener->address;
}

const char *rbx_server_describe(const struct rbx_server *server)
{
	return server->description;
}

uint64_t rbx_server_incarnation(const struct rbx_server *server)
{
	return server->incarnation;
}

/* With a memory file those of volumes that nobody has open stay where they are. Nobody moves those
 * of volumes of which the server is OUT. */
static uint32_t staying_count(const struct rbx_server *s)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->volumes.used; i++) {
		const struct rbx_kept_volume *kept = &s->volumes.kept[i];
		bool stays = kept->is_spared || (rbx_remembers(&s->remembered) && !kept->writer);

		if (kept->holder.id && stays)
			count += rbx_lender_lent_to(s->lender, kept->holder.id);
	}
	return count;
}

static bool all_returned(struct rbx_server *s)
{
	struct rbx_lender_counts counts;

	rbx_lender_counts(s->lender, &counts);
	return counts.slabs_lent == staying_count(s) && !counts.slabs_preparing &&
	       !counts.slabs_ending && !rbx_volumes_need_us(s);
}

int rbx_server_drain(struct rbx_server *s, uint32_t timeout_ms)
{
	struct timespec end =
		rbx_timespec_at(rbx_now_ns() + timeout_ms * 1000000ull);
	int err = rbx_guard_thread("rbx_server_drain");

	if (err)
		return err;
	pthread_mutex_lock(&s->lock);
	rbx_log(&s->log, "draining: nothing more is lent");
	rbx_lender_drain(s->lender, rbx_now_ns());
	rbx_control_thread_wake(s);
	while (!err && !all_returned(s))
		err = -pthread_cond_timedwait(&s->slab_ended, &s->lock, &end);
	if (all_returned(s))
		err = 0;
	pthread_mutex_unlock(&s->lock);
	if (err)
		return rbx_error(-ETIMEDOUT,
				 "clients still have slabs, or volumes that need this server, after %u ms",
				 timeout_ms);
	return 0;
}

int rbx_server_stop(struct rbx_server *s)
{
	int err;

	if (!s)
		return 0;
	err = rbx_guard_thread("rbx_server_stop");
	if (err)
		return err;
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_mutex_unlock(&s->lock);
	rbx_control_thread_wake(s);
	pthread_join(s->thread, NULL);
	return server_destroy(s);
}

void rbx_server_stats_get_sized(struct rbx_server *s, struct rbx_server_stats *stats,
				size_t size_bytes)
{
	struct rbx_server_stats now;

	pthread_mutex_lock(&s->lock);
	rbx_server_stats_fill(s, &now);
	pthread_mutex_unlock(&s->lock);
	rbx_sized_give(stats, size_bytes, &now, sizeof(now));
}
