/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reload_test.c - new limits and a new secret for a server that runs: what changes for
 * clients that are there and for those that come, and that a reload that is refused
 * changes nothing.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "server/state.h"
#include "tests/server/raw_client.h"

#define OLD_SECRET "correct horse battery staple\n"
#define NEW_SECRET "staple battery horse correct\n"

static void reload(struct world *world)
{
	if (rbx_server_reload(world->server, &world->options))
		fail_msg("%s", rbx_last_error());
}

static struct rbx_session *open_with(struct world *world, uint32_t slabs)
{
	struct rbx_session *session = world_session(world);
	struct rbx_loan loan;

	while (slabs--)
		assert_int_equal(rbx_session_map(session, &loan), 0);
	return session;
}

/* ---- Limits ----------------------------------------------------------------*/

static void more_memory_is_lent_at_once(void **state)
{
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	world_begin(&world);
	session = open_with(&world, 4);
	assert_int_equal(rbx_session_map(session, &loan), -ENOSPC);
	world.options.memory_bytes = 6 * WORLD_SLAB_BYTES;
	reload(&world);
	assert_int_equal(world_stats(&world).memory_bytes, 6 * WORLD_SLAB_BYTES);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	assert_int_equal(loan.slab_id, 5);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	assert_int_equal(rbx_session_map(session, &loan), -ENOSPC);
	rbx_session_close(session);
	world_stop(&world);
}

static bool two_are_asked_for(struct world *world)
{
	return RBX_LOAD_ACQUIRE(&world->witness.evict_count) >= 2;
}

/* The oldest first, and nothing is lent as long as there is too much. */
static void what_is_lent_above_less_memory_is_asked_for(void **state)
{
	struct rbx_session *session;
	struct rbx_loan loans[4], more;
	struct world world;
	int i;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	for (i = 0; i < 4; i++)
		assert_int_equal(rbx_session_map(session, &loans[i]), 0);
	world.options.memory_bytes = 2 * WORLD_SLAB_BYTES;
	reload(&world);
	world_wait(&world, two_are_asked_for);
	assert_int_equal(world.witness.evicted_slab_id, loans[1].slab_id);
	assert_int_equal(rbx_session_map(session, &more), -ENOSPC);
	assert_int_equal(rbx_session_unmap(session, &loans[0]), 0);
	assert_int_equal(rbx_session_map(session, &more), -ENOSPC);
	assert_int_equal(rbx_session_unmap(session, &loans[1]), 0);
	assert_int_equal(rbx_session_map(session, &more), -ENOSPC);
	assert_int_equal(rbx_session_check(session, &loans[2]), 0);
	assert_int_equal(rbx_session_unmap(session, &loans[2]), 0);
	assert_int_equal(rbx_session_map(session, &more), 0);
	assert_int_equal(world.witness.evict_count, 2);
	assert_int_equal(world_stats(&world).slabs_revoked, 0);
	rbx_session_close(session);
	world_stop(&world);
}

/* Looks for pressure as the server does, at this time. */
static uint32_t look(struct world *world, uint64_t now_ns)
{
	struct rbx_server *server = world->server;
	struct rbx_lender_counts counts;

	pthread_mutex_lock(&server->lock);
	rbx_pressure_tick(server, now_ns);
	rbx_lender_counts(server->lender, &counts);
	pthread_mutex_unlock(&server->lock);
	return counts.slabs_asked;
}

static uint64_t looked_ns(struct world *world)
{
	uint64_t ns;

	pthread_mutex_lock(&world->server->lock);
	ns = world->server->pressure_checked_ns;
	pthread_mutex_unlock(&world->server->lock);
	return ns;
}

/* Another look asks for no more, as long as the first ones have not come back; and a
 * limit that is lower still only for the rest. */
static void what_was_asked_for_is_not_asked_for_twice(void **state)
{
	struct rbx_session *session;
	struct world world;

	(void)state;
	world_begin(&world);
	session = open_with(&world, 4);
	world.options.memory_bytes = 2 * WORLD_SLAB_BYTES;
	reload(&world);
	world_wait(&world, two_are_asked_for);
	assert_int_equal(look(&world, looked_ns(&world) + 2000000000), 2);
	world.options.memory_bytes = WORLD_SLAB_BYTES;
	reload(&world);
	assert_int_equal(look(&world, rbx_now_ns() + 2000000000), 3);
	rbx_session_close(session);
	world_stop(&world);
}

/* The server looks once a second. A busy machine may be late, but not each time. */
static void reload_does_not_wait_for_the_next_look(void **state)
{
	uint64_t before_ns, late_ns = UINT64_MAX;
	struct world world;

	(void)state;
	world_begin(&world);
	for (int i = 0; i < 20 && late_ns >= 1000000000; i++) {
		before_ns = rbx_now_ns();
		look(&world, before_ns);
		before_ns = looked_ns(&world);
		reload(&world);
		for (int ms = 0; ms < WORLD_WAIT_MS && looked_ns(&world) <= before_ns; ms++)
			usleep(1000);
		assert_true(looked_ns(&world) > before_ns);
		late_ns = looked_ns(&world) - before_ns;
	}
	assert_true(late_ns < 1000000000);
	world_stop(&world);
}

static void lower_quota_takes_nothing_away(void **state)
{
	struct rbx_session *session, *other;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	world_begin(&world);
	session = open_with(&world, 2);
	world.options.quota_bytes = WORLD_SLAB_BYTES;
	reload(&world);
	assert_int_equal(rbx_session_map(session, &loan), -EDQUOT);
	other = open_with(&world, 0);
	assert_int_equal(rbx_session_map(other, &loan), -EDQUOT);
	assert_int_equal(world_stats(&world).slabs_lent, 2);
	world.options.quota_bytes = 0;
	reload(&world);
	assert_int_equal(rbx_session_map(other, &loan), 0);
	assert_int_equal(world.witness.evict_count, 0);
	rbx_session_close(other);
	rbx_session_close(session);
	world_stop(&world);
}

/* ---- Secrets ---------------------------------------------------------------*/

static void enter_refused(struct world *world)
{
	struct raw_client raw = { 0 };

	raw_client_arrive(&raw, world);
	raw_client_greet(&raw);
	raw_client_prove(&raw, world->secret);
	raw_client_is_refused(&raw, RBX_REASON_WRONG_SECRET);
	raw_client_leave(&raw);
}

static void enter(struct world *world)
{
	struct raw_client raw = { 0 };

	raw_client_arrive(&raw, world);
	raw_client_enter(&raw);
	raw_client_leave(&raw);
}

/* From the same file, as a file that was written anew. */
static void new_secret_is_for_those_who_come(void **state)
{
	struct raw_client raw = { 0 }, again = { 0 };
	struct rbx_secret *former;
	struct world world;

	(void)state;
	world_options(&world);
	strcpy(world.options.secret_file, world_secret_file(OLD_SECRET, 0600));
	world_start(&world);
	raw_client_arrive(&raw, &world);
	raw_client_enter(&raw);
	world_secret_file(NEW_SECRET, 0600);
	enter(&world); /* nobody has told the server */
	reload(&world);
	enter_refused(&world);
	raw_client_resume(&again, &raw, 0);

	former = world.secret;
	assert_int_equal(rbx_secret_load(world.options.secret_file, &world.secret), 0);
	enter(&world);
	rbx_secret_free(former);
	raw_client_leave(&again);
	raw_client_leave(&raw);
	world_stop(&world);
}

/* ---- Refusals --------------------------------------------------------------*/

static void refuse(struct world *world, const struct rbx_server_options *options,
		   int err, const char *why)
{
	assert_int_equal(rbx_server_reload(world->server, options), err);
	if (!strstr(rbx_last_error(), why))
		fail_msg("no '%s' in: %s", why, rbx_last_error());
	assert_int_equal(world_stats(world).memory_bytes, 4 * WORLD_SLAB_BYTES);
	enter(world);
}

/* All of these would change the memory as well. */
static void refused_reload_changes_nothing(void **state)
{
	const struct rbx_server_options *is;
	struct rbx_server_options wanted;
	struct world world;

	(void)state;
	world_options(&world);
	strcpy(world.options.secret_file, world_secret_file(OLD_SECRET, 0600));
	world_start(&world);
	is = &world.options;
#define REFUSE(change, err, why)                                  \
	do {                                                      \
		wanted = *is;                                     \
		wanted.memory_bytes = 8 * WORLD_SLAB_BYTES;       \
		change;                                           \
		refuse(&world, &wanted, err, why);                \
	} while (0)
	REFUSE(strcpy(wanted.listen, "127.0.0.2:0"), -EINVAL, "listen (");
	REFUSE(strcpy(wanted.fabric, "soft"), -EINVAL, "fabric (");
	REFUSE(strcpy(wanted.device, "other"), -EINVAL, "device (");
	REFUSE(wanted.gid_index = 1, -EINVAL, "gid_index cannot");
	REFUSE(wanted.slab_bytes *= 2, -EINVAL, "slab_bytes (");
	REFUSE(wanted.lease_ms++, -EINVAL, "lease_ms (");
	REFUSE(wanted.clients_max = 7, -EINVAL, "clients_max (");
	REFUSE(wanted.small_pages = 1, -EINVAL, "small_pages (");
	REFUSE(wanted.insecure = 0, -EINVAL, "insecure (");
	REFUSE(wanted.secret_file[0] = 0, -EINVAL, "whether there is a secret cannot");
	REFUSE(strcpy(wanted.secret_file, "/nowhere/secret"), -ENOENT, "/nowhere/secret");
	REFUSE(wanted.quota_bytes = 1, -EINVAL, "quota");
	REFUSE(wanted.memory_bytes = 1, -EINVAL, "less than one slab");
	REFUSE(wanted.memory_bytes = (RBX_LENT_SLABS_MAX + 1ull) * WORLD_SLAB_BYTES,
	       -EINVAL, "more than 65536 slabs");
	world_secret_file("short\n", 0600);
	REFUSE((void)0, -EINVAL, "too short");
	world_secret_file(NEW_SECRET, 0604);
	REFUSE((void)0, -EACCES, "open to everybody");
#undef REFUSE
	assert_int_equal(rbx_server_reload(NULL, is), -EINVAL);
	assert_int_equal(rbx_server_reload(world.server, NULL), -EINVAL);
	world_stop(&world);
}

static void drained_server_stays_so(void **state)
{
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	assert_int_equal(rbx_server_drain(world.server, 0), 0);
	world.options.memory_bytes = 6 * WORLD_SLAB_BYTES;
	reload(&world);
	assert_int_not_equal(rbx_session_map(session, &loan), 0);
	assert_int_equal(world_stats(&world).draining, 1);
	rbx_session_close(session);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_memory_is_lent_at_once),
		cmocka_unit_test(what_is_lent_above_less_memory_is_asked_for),
		cmocka_unit_test(what_was_asked_for_is_not_asked_for_twice),
		cmocka_unit_test(reload_does_not_wait_for_the_next_look),
		cmocka_unit_test(lower_quota_takes_nothing_away),
		cmocka_unit_test(new_secret_is_for_those_who_come),
		cmocka_unit_test(refused_reload_changes_nothing),
		cmocka_unit_test(drained_server_stays_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
