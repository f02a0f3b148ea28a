/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pressure_test.c - a server whose host runs short of memory, which is played here: how
 * many slabs it asks for, when it lends none, and what becomes of those that it has asked
 * for without a deadline.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "server/host_memory.h"
#include "server/state.h"
#include "tests/server/world.h"

#define SLABS 8
/* A reserve of 200 slabs, below which nothing is lent; half of it is wanted back. */
#define RESERVE_SLABS 200
#define TOTAL_BYTES (64ull * RESERVE_SLABS * WORLD_SLAB_BYTES)
#define WANTED_SLABS (RESERVE_SLABS / 2)

static uint64_t available_bytes; /* atomic */

bool rbx_host_memory_read(struct rbx_host_memory *memory)
{
	*memory = (struct rbx_host_memory){
		.total_bytes = TOTAL_BYTES,
		.available_bytes = RBX_LOAD_ACQUIRE(&available_bytes),
		.where = "this machine",
	};
	return true;
}

static void set_available(double slabs)
{
	RBX_STORE_RELEASE(&available_bytes, (uint64_t)(slabs * WORLD_SLAB_BYTES));
}

static struct rbx_lender_counts counts_of(struct world *world)
{
	struct rbx_lender_counts counts;

	pthread_mutex_lock(&world->server->lock);
	rbx_lender_counts(world->server->lender, &counts);
	pthread_mutex_unlock(&world->server->lock);
	return counts;
}

/* The server looks once a second. */
static void let_it_look_twice(void)
{
	usleep(2500000);
}

/* A client that has so many slabs. */
static struct rbx_session *begin(struct world *world, uint32_t slabs)
{
	struct rbx_session *session;
	struct rbx_loan loan;

	set_available(2 * RESERVE_SLABS);
	world_options(world);
	world->options.memory_bytes = SLABS * WORLD_SLAB_BYTES;
	world_start(world);
	session = world_session(world);
	while (slabs--)
		assert_int_equal(rbx_session_map(session, &loan), 0);
	return session;
}

static void end(struct world *world, struct rbx_session *session)
{
	rbx_session_close(session);
	world_stop(world);
}

static void as_many_are_asked_for_as_are_missing(void **state)
{
	struct rbx_session *session;
	struct world world;

	(void)state;
	session = begin(&world, SLABS);
	set_available(WANTED_SLABS);
	let_it_look_twice();
	assert_int_equal(counts_of(&world).slabs_asked, 0);
	set_available(WANTED_SLABS - 3.5);
	let_it_look_twice();
	assert_int_equal(counts_of(&world).slabs_asked, 4);
	assert_int_equal(counts_of(&world).slabs_due, 4);
	end(&world, session);
}

/* Below the reserve, and what the next one would take. */
static void nothing_is_lent_from_the_reserve(void **state)
{
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	session = begin(&world, 0);
	set_available(RESERVE_SLABS + 0.5);
	assert_int_equal(rbx_session_map(session, &loan), -ENOSPC);
	set_available(RESERVE_SLABS + 1);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	end(&world, session);
}

/* They do not count as help for the host, and are the first to get one. */
static void what_has_no_deadline_gets_one(void **state)
{
	struct rbx_session *session;
	struct world world;

	(void)state;
	session = begin(&world, 6);
	world.options.memory_bytes = 4 * WORLD_SLAB_BYTES;
	assert_int_equal(rbx_server_reload(world.server, &world.options), 0);
	let_it_look_twice();
	assert_int_equal(counts_of(&world).slabs_asked, 2);
	assert_int_equal(counts_of(&world).slabs_due, 0);
	set_available(WANTED_SLABS - 1);
	let_it_look_twice();
	assert_int_equal(counts_of(&world).slabs_asked, 2);
	assert_int_equal(counts_of(&world).slabs_due, 1);
	set_available(WANTED_SLABS - 3);
	let_it_look_twice();
	assert_int_equal(counts_of(&world).slabs_asked, 3);
	assert_int_equal(counts_of(&world).slabs_due, 3);
	end(&world, session);
}

static uint32_t warnings_count; /* atomic */

static void note_warning(const char *line, void *user)
{
	(void)user;
	if (strstr(line, "are to be lent"))
		RBX_FETCH_ADD(&warnings_count, 1);
}

/* What is lent already is not available any more, and need not be. */
static void reload_counts_what_is_lent(void **state)
{
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;
	int i;

	(void)state;
	set_available(2 * RESERVE_SLABS);
	world_options(&world);
	world.options.log = note_warning;
	world_start(&world);
	session = world_session(&world);
	for (i = 0; i < 4; i++)
		assert_int_equal(rbx_session_map(session, &loan), 0);
	set_available(3);
	world.options.memory_bytes = 7 * WORLD_SLAB_BYTES;
	assert_int_equal(rbx_server_reload(world.server, &world.options), 0);
	assert_int_equal(warnings_count, 0);
	world.options.memory_bytes = 8 * WORLD_SLAB_BYTES;
	assert_int_equal(rbx_server_reload(world.server, &world.options), 0);
	assert_int_equal(warnings_count, 1);
	world.options.memory_bytes = TOTAL_BYTES + WORLD_SLAB_BYTES;
	assert_int_equal(rbx_server_reload(world.server, &world.options), -ENOMEM);
	assert_non_null(strstr(rbx_last_error(), "this machine"));
	end(&world, session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_are_asked_for_as_are_missing),
		cmocka_unit_test(nothing_is_lent_from_the_reserve),
		cmocka_unit_test(what_has_no_deadline_gets_one),
		cmocka_unit_test(reload_counts_what_is_lent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
