/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * away_test.c - a server of a pool is away: what the others know is told, and named volumes change
 * as long as enough of their servers are there. And what they could never hold is refused.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "include/rdmabox/named_volume.h"
#include "tests/lib/volume/three_servers.h"

#define SIZE (2ull * TENANT_SLAB_BYTES)
#define MEMORY ((uint64_t)TENANT_SLABS * TENANT_SLAB_BYTES) /* of a server */

/* Servers that a call went on without. */
static struct {
	int count;
	char last[256];
	char why[512];
} away;

static void note_away(const char *server, const char *why, void *user)
{
	assert_ptr_equal(user, &away);
	away.count++;
	snprintf(away.last, sizeof(away.last), "%s", server);
	snprintf(away.why, sizeof(away.why), "%s", why);
}

static struct rbx_context *context(void)
{
	struct rbx_options options;
	struct rbx_context *ctx;

	tenant_options(&options);
	options.peer_timeout_ms = 1000;
	options.server_away = note_away;
	options.server_away_user = &away;
	away.count = 0;
	assert_int_equal(rbx_open(&ctx, &options), 0);
	return ctx;
}

/* Away since the last look: this one, or none. */
static void expect_away(const char *server)
{
	assert_int_equal(away.count, server ? 1 : 0);
	if (server)
		assert_string_equal(away.last, server);
	assert_true(!server || *away.why);
	away.count = 0;
}

static void end(int index, char address[256])
{
	snprintf(address, 256, "%s", rbx_server_address(servers[index]));
	rbx_server_stop(servers[index]);
	servers[index] = NULL;
}

static int left_stop(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < SERVERS; i++)
		if (servers[i])
			rbx_server_stop(servers[i]);
	return 0;
}

static void make(struct rbx_context *ctx, const char *name, uint32_t replicas, uint32_t reserve)
{
	struct rbx_volume_create_options options;

	rbx_volume_create_options_defaults(&options);
	options.replicas = replicas;
	options.reserve = reserve;
	assert_int_equal(rbx_volume_create(ctx, pool, name, SIZE, &options), 0);
}

static struct rbx_volume *open_volume(struct rbx_context *ctx, const char *name)
{
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	rbx_volume_options_defaults(&options);
	options.name = name;
	assert_int_equal(rbx_volume_open(ctx, &volume, pool, 0, &options), 0);
	return volume;
}

static struct rbx_volume_info info_of(struct rbx_context *ctx, const char *name)
{
	struct rbx_volume_info infos[4];
	int i, count = rbx_volume_list(ctx, pool, infos, 4);

	for (i = 0; i < count && strcmp(infos[i].name, name);)
		i++;
	assert_true(i < count);
	return infos[i];
}

/* One has ended, and one takes connections and says nothing. */
static void what_the_others_know_is_listed(void **state)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int mute = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct rbx_context *ctx = context();
	struct rbx_volume_member members[SERVERS];
	struct rbx_volume_info infos[3];
	socklen_t bytes = sizeof(name);
	char ended[256], more[768];

	(void)state;
	make(ctx, "two", 2, 0);
	make(ctx, "one", 1, 0);
	expect_away(NULL);
	end(2, ended);
	assert_int_equal(rbx_volume_list(ctx, pool, infos, 3), 2);
	expect_away(ended);
	assert_string_equal(infos[1].name, "two");
	assert_int_equal(infos[1].servers, SERVERS);
	assert_int_equal(infos[1].servers_there, SERVERS - 1);
	assert_int_equal(infos[1].too_few, 0);
	assert_int_equal(infos[0].too_few, 1); /* nobody else has its slabs */
	assert_int_equal(rbx_volume_members_list(ctx, pool, "two", members, SERVERS), SERVERS);
	expect_away(ended);
	assert_int_equal(bind(mute, (struct sockaddr *)&name, bytes), 0);
	assert_int_equal(listen(mute, 8), 0);
	assert_int_equal(getsockname(mute, (struct sockaddr *)&name, &bytes), 0);
	snprintf(more, sizeof(more), "%s,127.0.0.1:%u", pool, ntohs(name.sin_port));
	assert_int_equal(rbx_volume_list(ctx, more, infos, 3), 2);
	assert_int_equal(away.count, 2);
	away.count = 0;
	assert_int_equal(rbx_volume_list(ctx, ended, infos, 3), -ECONNREFUSED);
	expect_away(NULL);
	end(1, ended);
	assert_int_equal(info_of(ctx, "two").too_few, 1);
	close(mute);
	rbx_close(ctx);
}

static void more_than_half_change_a_volume(void **state)
{
	struct rbx_context *ctx = context();
	struct rbx_volume *volume;
	char ended[256];

	(void)state;
	make(ctx, "old", 2, 0);
	make(ctx, "all", 2, 1);
	volume = open_volume(ctx, "old");
	write_page(volume, TENANT_SLAB_BYTES);
	assert_int_equal(rbx_volume_close(volume), 0);
	end(2, ended);
	assert_int_equal(rbx_volume_grow(ctx, pool, "old", 2 * SIZE), 0);
	expect_away(ended);
	assert_int_equal(rbx_volume_grow(ctx, pool, "all", 2 * SIZE), -EHOSTUNREACH);
	assert_non_null(strstr(rbx_last_error(), "may have left some"));
	expect_away(NULL);
	assert_int_equal(rbx_volume_rename(ctx, pool, "old", "new"), 0);
	expect_away(ended);
	assert_int_equal(info_of(ctx, "new").volume_bytes, 2 * SIZE);
	volume = open_volume(ctx, "new");
	expect_page(volume, TENANT_SLAB_BYTES);
	assert_int_equal(rbx_volume_close(volume), 0);
	end(1, ended);
	assert_int_equal(rbx_volume_grow(ctx, pool, "all", 3 * SIZE), -EHOSTUNREACH);
	assert_non_null(strstr(rbx_last_error(), "too few are left to change it"));
	assert_int_equal(rbx_volume_rename(ctx, pool, "all", "other"), -EHOSTUNREACH);
	rbx_close(ctx);
}

/* It was heard of, so the one that was not is another one, which may be missing. */
static void server_that_is_out_is_none_of_those_that_are_away(void **state)
{
	struct rbx_server *fourth = tenant_server();
	struct rbx_context *ctx = context();
	struct rbx_volume *volume;
	char ended[256];

	(void)state;
	strcat(strcat(pool, ","), rbx_server_address(fourth));
	make(ctx, "db", 2, 0);
	volume = open_volume(ctx, "db");
	write_page(volume, TENANT_SLAB_BYTES);
	assert_int_equal(rbx_server_drain(servers[2], TENANT_WAIT_MS), 0);
	assert_int_equal(rbx_volume_close(volume), 0);
	/* All that was being said is said, so nobody waits for the lease of this one. */
	assert_int_equal(rbx_volume_close(open_volume(ctx, "db")), 0);
	end(1, ended);
	volume = open_volume(ctx, "db");
	expect_page(volume, TENANT_SLAB_BYTES);
	assert_int_equal(rbx_volume_close(volume), 0);
	rbx_close(ctx);
	rbx_server_stop(fourth);
}

static int create(struct rbx_context *ctx, uint64_t size, uint32_t replicas, uint32_t overcommit)
{
	struct rbx_volume_create_options options;
	int err;

	rbx_volume_create_options_defaults(&options);
	options.replicas = replicas;
	options.overcommit = overcommit;
	err = rbx_volume_create(ctx, pool, "db", size, &options);
	if (!err)
		assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	return err;
}

static void larger_than_all_memory_is_refused(void **state)
{
	struct rbx_context *ctx = context();
	struct rbx_volume_create_options options;

	(void)state;
	assert_int_equal(create(ctx, 3 * MEMORY, 1, 0), 0);
	assert_int_equal(create(ctx, 3 * MEMORY + PAGE, 1, 0), -ENOSPC);
	assert_non_null(strstr(rbx_last_error(), "its 3 servers that are there have 96 MiB in all"));
	assert_int_equal(create(ctx, 3 * MEMORY + PAGE, 1, 1), 0);
	assert_int_equal(create(ctx, 3 * MEMORY / 2, 2, 0), 0);
	assert_int_equal(create(ctx, 3 * MEMORY / 2 + PAGE, 2, 0), -ENOSPC);
	assert_int_equal(create(ctx, MEMORY, 3, 0), 0);
	assert_int_equal(create(ctx, MEMORY + PAGE, 3, 0), -ENOSPC);
	/* What is lent does not matter: it may come back. */
	make(ctx, "full", 3, 1);
	assert_int_equal(create(ctx, MEMORY, 3, 0), 0);
	rbx_volume_create_options_defaults(&options);
	options.overcommit = 1;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", MEMORY, &options), 0);
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", 3 * MEMORY + PAGE), -ENOSPC);
	assert_int_equal(info_of(ctx, "db").volume_bytes, MEMORY);
	assert_int_equal(rbx_volume_grow_beyond(ctx, pool, "db", 3 * MEMORY + PAGE), 0);
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", 3 * MEMORY + PAGE), 0);
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", 4 * MEMORY), -ENOSPC);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "full", 0), 0);
	rbx_close(ctx);
}

/* Two copies of a slab are at two servers, so the small one says how many slabs there can be. */
static void copies_that_have_no_second_server_are_refused(void **state)
{
	struct rbx_volume_create_options wanted;
	struct rbx_server_options options;
	struct rbx_context *ctx = context();
	struct rbx_server *small;
	char list[512];

	(void)state;
	tenant_server_options(&options);
	options.memory_bytes = TENANT_SLAB_BYTES;
	assert_int_equal(rbx_server_start(&small, &options), 0);
	snprintf(list, sizeof(list), "%s,%s", rbx_server_address(servers[0]),
		 rbx_server_address(small));
	rbx_volume_create_options_defaults(&wanted);
	wanted.replicas = 2;
	assert_int_equal(rbx_volume_create(ctx, list, "db", SIZE, &wanted), -ENOSPC);
	assert_int_equal(rbx_volume_create(ctx, list, "db", TENANT_SLAB_BYTES, &wanted), 0);
	assert_int_equal(rbx_volume_remove(ctx, list, "db", 0), 0);
	rbx_server_stop(small);
	rbx_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_the_others_know_is_listed, servers_start,
						left_stop),
		cmocka_unit_test_setup_teardown(more_than_half_change_a_volume, servers_start,
						left_stop),
		cmocka_unit_test_setup_teardown(server_that_is_out_is_none_of_those_that_are_away,
						servers_start, left_stop),
		cmocka_unit_test_setup_teardown(larger_than_all_memory_is_refused, servers_start,
						left_stop),
		cmocka_unit_test_setup_teardown(copies_that_have_no_second_server_are_refused,
						servers_start, left_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
