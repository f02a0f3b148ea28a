/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* world.c - see world.h. */
#include "tests/server/world.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/port.h"

static const char *environment(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value ? value : otherwise;
}

void world_options(struct world *world)
{
	struct rbx_server_options *options = &world->options;

	memset(world, 0, sizeof(*world));
	rbx_server_options_defaults(options);
	strcpy(options->listen, environment("RBX_TEST_LISTEN", "127.0.0.1:0"));
	strcpy(options->fabric, environment("RBX_TEST_FABRIC", "soft:tcp"));
	options->slab_bytes = WORLD_SLAB_BYTES;
	options->memory_bytes = 4 * WORLD_SLAB_BYTES;
	options->insecure = 1; /* verbs may not have a loopback address */
}

static void client_start(struct world *world)
{
	struct rbx_sessions_options options = {
		.insecure = true,
		.silence_ms = 5000,
	};
	struct rbx_mr_init init = {
		.length_bytes = WORLD_SLAB_BYTES,
		.rights = RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};
	char error[RBX_ERROR_TEXT_MAX] = "";

	assert_int_equal(rbx_fabric_choose(world->options.fabric, "", -1, NULL,
					   &world->choice),
			 0);
	assert_int_equal(world->choice.ops->open(&world->choice.options,
						 &world->device, error),
			 0);
	if (world->options.secret_file[0])
		assert_int_equal(rbx_secret_load(world->options.secret_file,
						 &world->secret),
				 0);
	options.device = world->device;
	options.secret = world->secret;
	assert_int_equal(rbx_sessions_open(&world->set, &options), 0);
	assert_int_equal(world->choice.ops->create_cq(world->device, 64,
						      &world->cq, error),
			 0);
	world->memory = aligned_alloc(4096, WORLD_SLAB_BYTES);
	assert_non_null(world->memory);
	init.addr = world->memory;
	assert_int_equal(world->choice.ops->register_memory(
				 world->device, &init, 1, &world->mr, error),
			 0);
}

void world_start(struct world *world)
{
	if (rbx_server_start(&world->server, &world->options))
		fail_msg("%s", rbx_last_error());
	client_start(world);
}

void world_begin(struct world *world)
{
	world_options(world);
	world_start(world);
}

void world_stop(struct world *world)
{
	const struct rbx_fabric_ops *ops = world->choice.ops;

	rbx_sessions_close(world->set);
	ops->destroy_cq(world->cq);
	ops->deregister_memory(world->device, &world->mr, 1);
	ops->close(world->device);
	rbx_secret_free(world->secret);
	rbx_server_stop(world->server);
	free(world->memory);
	if (world->options.secret_file[0])
		unlink(world->options.secret_file);
	if (world->options.secrets_file[0])
		unlink(world->options.secrets_file);
}

void world_wait(struct world *world, bool (*done)(struct world *world))
{
	int waited_ms;

	for (waited_ms = 0; waited_ms < WORLD_WAIT_MS; waited_ms += 5) {
		if (done(world))
			return;
		poll(NULL, 0, 5);
	}
	fail_msg("it did not happen within %d ms", WORLD_WAIT_MS);
}

static void lost(void *user, const char *reason)
{
	struct witness *witness = user;

	print_message("lost: %s\n", reason);
	RBX_FETCH_ADD(&witness->lost_count, 1);
}

static void evict(void *user, const struct rbx_eviction *eviction)
{
	struct witness *witness = user;

	RBX_STORE_RELEASE(&witness->evicted_slab_id, eviction->slab_id);
	RBX_STORE_RELEASE(&witness->evicted_epoch, eviction->epoch);
	RBX_FETCH_ADD(&witness->evict_count, 1);
}

struct rbx_session *world_session(struct world *world)
{
	const struct rbx_session_events events = {
		.lost = lost, .evict = evict, .user = &world->witness
	};
	struct rbx_session *session = NULL;

	if (rbx_session_open_name(world->set, rbx_server_address(world->server),
				  &events, &session))
		fail_msg("%s", rbx_last_error());
	return session;
}

struct rbx_session *world_session_as(struct world *world, const char *credential,
				     const char *secret)
{
	const struct rbx_session_events events = {
		.lost = lost, .evict = evict, .user = &world->witness
	};
	struct rbx_session *session = NULL;
	int err;

	world->set->secret = (struct rbx_root){ (const uint8_t *)secret, strlen(secret) };
	memset(world->set->credential, 0, sizeof(world->set->credential));
	strcpy(world->set->credential, credential);
	err = rbx_session_open_name(world->set, rbx_server_address(world->server), &events,
				    &session);
	if (err)
		assert_int_equal(err, -EACCES);
	return err ? NULL : session;
}

struct rbx_qp *world_qp(struct world *world, struct rbx_session *session)
{
	const struct rbx_qp_init init = {
		.send_cq = world->cq,
		.recv_cq = world->cq,
		.send_depth_count = 8,
		.recv_depth_count = 1,
		.max_sge = 1,
	};
	struct rbx_qp *qp = NULL;

	if (rbx_session_connect_qp(session, &init, &qp))
		fail_msg("%s", rbx_last_error());
	return qp;
}

int world_transfer(struct world *world, struct rbx_qp *qp, uint8_t opcode,
		   const struct rbx_loan *loan)
{
	const struct rbx_fabric_ops *ops = world->choice.ops;
	const struct rbx_sge sge = {
		.addr = (uintptr_t)world->memory,
		.length_bytes = WORLD_SLAB_BYTES,
		.lkey = world->mr->lkey,
	};
	struct rbx_wr *bad;
	struct rbx_wr wr = {
		.wr_id = 7,
		.sges = &sge,
		.sge_count = 1,
		.opcode = opcode,
		.flags = RBX_WR_SIGNALED,
		.rkey = loan->rkey,
		.remote_addr = loan->remote_addr,
	};
	struct rbx_wc wc;
	int spins;

	assert_int_equal(ops->post_send(qp, &wr, &bad), 0);
	for (spins = 0; spins < WORLD_WAIT_MS * 10; spins++) {
		if (ops->poll(world->cq, &wc, 1) == 1) {
			assert_int_equal(wc.wr_id, 7);
			return wc.status;
		}
		usleep(100);
	}
	fail_msg("no completion");
	return 0;
}

struct rbx_server_stats world_stats(struct world *world)
{
	struct rbx_server_stats stats;

	rbx_server_stats_get(world->server, &stats);
	return stats;
}

static void file_write(const char *path, const char *text, unsigned int mode)
{
	int fd;

	unlink(path);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

const char *world_secret_file(const char *text, unsigned int mode)
{
	static char path[64];

	snprintf(path, sizeof(path), "/tmp/rdmabox-secret-%d", (int)getpid());
	file_write(path, text, mode);
	return path;
}

const char *world_secrets_file(const char *text)
{
	static char path[64];

	snprintf(path, sizeof(path), "/tmp/rdmabox-secrets-%d", (int)getpid());
	file_write(path, text, 0600);
	return path;
}

void world_serves_on(struct world *world)
{
	struct rbx_session *session = world_session(world);
	struct rbx_loan loan;

	assert_int_equal(rbx_session_map(session, &loan), 0);
	rbx_session_close(session);
}
