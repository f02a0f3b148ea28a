/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * descriptors_test.c - a server that may open few files: it says so when it starts, and a
 * slab that cannot have one is refused for now, not as if the memory were used up.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/server/world.h"

#define FILES_MANY 2048u
#define FILES_MAX 256u /* of this process; nobody can raise it again */

/* Before anything has lowered it. 30 clients need less than this. */
static void higher_limit_is_not_lowered(void **state)
{
	struct rlimit limit;
	struct world world;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < FILES_MANY)
		skip();
	limit.rlim_cur = FILES_MANY;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	world_options(&world);
	world.options.clients_max = 30;
	world_start(&world);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(limit.rlim_cur, FILES_MANY);
	world_stop(&world);
}

static void files_limit(rlim_t count)
{
	const struct rlimit limit = { count, FILES_MAX };

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void line_keep(const char *line, void *user)
{
	snprintf(user, RBX_ERROR_TEXT_MAX, "%s", line);
}

static void start_with_few_descriptors_is_told(void **state)
{
	char line[RBX_ERROR_TEXT_MAX] = "";
	struct world world;

	(void)state;
	world_options(&world);
	world.options.log = line_keep;
	world.options.user = line;
	world_start(&world);
	assert_non_null(strstr(line, "4 slabs and 1024 clients need"));
	assert_non_null(strstr(line, "the limit is 256"));
	world_stop(&world);
	/* So few clients have room, as most have few queue pairs. */
	line[0] = '\0';
	world.options.clients_max = 30;
	world_start(&world);
	assert_string_equal(line, "");
	world_stop(&world);
}

static void start_raises_the_limit_as_far_as_it_may(void **state)
{
	struct rlimit limit;
	struct world world;

	(void)state;
	files_limit(FILES_MAX / 2);
	world_options(&world);
	world.options.clients_max = 30;
	world_start(&world);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(limit.rlim_cur, FILES_MAX);
	assert_int_equal(limit.rlim_max, FILES_MAX);
	world_stop(&world);
}

static void reload_with_too_few_for_its_slabs_is_refused(void **state)
{
	struct rbx_server_options wanted;
	struct world world;

	(void)state;
	world_options(&world);
	world.options.clients_max = 30;
	world_start(&world);
	wanted = world.options;
	wanted.memory_bytes = FILES_MAX * WORLD_SLAB_BYTES;
	assert_int_equal(rbx_server_reload(world.server, &wanted), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "256 slabs and 30 clients need"));
	assert_int_equal(world_stats(&world).memory_bytes, world.options.memory_bytes);
	world_stop(&world);
}

static void start_with_too_few_for_its_slabs_fails(void **state)
{
	struct rbx_server *server = NULL;
	struct world world;

	(void)state;
	world_options(&world);
	world.options.memory_bytes = FILES_MAX * WORLD_SLAB_BYTES;
	assert_int_equal(rbx_server_start(&server, &world.options), -EINVAL);
	assert_null(server);
	assert_non_null(strstr(rbx_last_error(), "fewer clients (--clients)"));
}

static void failures_count(const char *line, void *user)
{
	if (strstr(line, "a slab cannot be lent: cannot make a memory file"))
		RBX_FETCH_ADD((int *)user, 1);
}

/* Which the log tells once, until a slab was lent again. */
static void slab_without_a_descriptor_is_refused_for_now(void **state)
{
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;
	int told_count = 0; /* atomic */
	int i;

	(void)state;
	world_options(&world);
	world.options.log = failures_count;
	world.options.user = &told_count;
	world_start(&world);
	session = world_session(&world);
	for (i = 1; i <= 2; i++) {
		files_limit(3); /* of which stdin and the others are open */
		assert_int_equal(rbx_session_map(session, &loan), -ETIMEDOUT);
		assert_int_equal(rbx_session_map(session, &loan), -ETIMEDOUT);
		assert_int_equal(RBX_LOAD_ACQUIRE(&told_count), i);
		files_limit(FILES_MAX);
		assert_int_equal(rbx_session_map(session, &loan), 0);
	}
	rbx_session_close(session);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest unlimited[] = {
		cmocka_unit_test(higher_limit_is_not_lowered),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_with_few_descriptors_is_told),
		cmocka_unit_test(start_with_too_few_for_its_slabs_fails),
		cmocka_unit_test(start_raises_the_limit_as_far_as_it_may),
		cmocka_unit_test(reload_with_too_few_for_its_slabs_is_refused),
		cmocka_unit_test(slab_without_a_descriptor_is_refused_for_now),
	};

	if (cmocka_run_group_tests(unlimited, NULL, NULL))
		return 1;
	files_limit(FILES_MAX);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
