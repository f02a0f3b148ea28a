/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rolling_test.c - servers of a named volume with two replicas are restarted one after another,
 * while a program writes to it and verifies all the time. Each becomes a server of the volume
 * again: if it comes back as an empty one, with all that it had in its memory file, or as it was,
 * because it was only out of reach.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/random.h"
#include "include/rdmabox/named_volume.h"
#include "tests/lib/server_process.h"
#include "tests/lib/tenant.h"

#define SERVERS 5
#define PAGE 4096u
#define SLABS 8u
#define PAGES (SLABS * (TENANT_SLAB_BYTES / PAGE))

static struct server_process processes[SERVERS];
static char list[512]; /* of all of them */
static char path[64], pool[80]; /* the same as a file */
static bool have_memory_files;

static void file_of(int index, char file[64])
{
	snprintf(file, 64, "/dev/shm/rdmabox-rolling-%d-%d", (int)getpid(), index);
}

static void server_start(int index, const char *address)
{
	char file[64], option[96];

	file_of(index, file);
	snprintf(option, sizeof(option), "--memory-file=%s", file);
	server_process_start(&processes[index], address, have_memory_files ? option : NULL);
}

static int begin(void **state)
{
	FILE *file;
	int i;

	(void)state;
	list[0] = '\0';
	snprintf(path, sizeof(path), "/tmp/rdmabox-rolling.%d", (int)getpid());
	snprintf(pool, sizeof(pool), "file:%s", path);
	file = fopen(path, "w");
	assert_non_null(file);
	for (i = 0; i < SERVERS; i++) {
		server_start(i, "127.0.0.1:0");
		fprintf(file, "%s\n", processes[i].address);
		strcat(list, i ? "," : "");
		strcat(list, processes[i].address);
	}
	return fclose(file);
}

static int begin_with_memory_files(void **state)
{
	have_memory_files = true;
	return begin(state);
}

static int finish(void **state)
{
	char file[64];
	int i;

	(void)state;
	for (i = 0; i < SERVERS; i++) {
		server_process_kill(&processes[i]);
		file_of(i, file);
		(void)unlink(file);
	}
	have_memory_files = false;
	return unlink(path);
}

/* ---- The program ------------------------------------------------------------------------------*/

struct program {
	struct rbx_volume *volume;
	uint32_t generations[PAGES]; /* of what was written last; 0: zeros */
	uint32_t stop; /* atomic */
	uint32_t writes_count; /* atomic */
	uint32_t down_count, added_count, left_out_count; /* events; atomic */
	pthread_t thread;
};

static void page_fill(uint64_t *page, uint32_t index, uint32_t generation)
{
	uint32_t i;

	for (i = 0; i < PAGE / sizeof(*page); i++)
		page[i] = generation ? (uint64_t)generation << 32 | (index + i) : 0;
}

static void page_expect(struct program *program, uint32_t index)
{
	uint64_t page[PAGE / 8], expected[PAGE / 8];
	int err = rbx_read(program->volume, page, PAGE, (uint64_t)index * PAGE);

	if (err)
		fail_msg("page %u: %s", index, strerror(-err));
	page_fill(expected, index, program->generations[index]);
	assert_memory_equal(page, expected, PAGE);
}

static void *program_run(void *argument)
{
	struct program *program = argument;
	struct rbx_random random;
	uint64_t page[PAGE / 8];

	rbx_random_seed(&random, 1128);
	while (!__atomic_load_n(&program->stop, __ATOMIC_RELAXED)) {
		uint32_t index = rbx_random_below(&random, PAGES);
		int err;

		page_fill(page, index, ++program->generations[index]);
		err = rbx_write(program->volume, page, PAGE, (uint64_t)index * PAGE);
		if (err)
			fail_msg("write of page %u: %s", index, strerror(-err));
		page_expect(program, rbx_random_below(&random, PAGES));
		__atomic_fetch_add(&program->writes_count, 1, __ATOMIC_RELAXED);
		usleep(500); /* thousands while a server is away are enough */
	}
	return NULL;
}

static void note(struct rbx_volume *volume, const struct rbx_event *event, void *user)
{
	struct program *program = user;

	(void)volume;
	if (event->kind == RBX_EVENT_SERVER_DOWN)
		__atomic_fetch_add(&program->down_count, 1, __ATOMIC_RELAXED);
	if (event->kind == RBX_EVENT_SERVER_ADDED)
		__atomic_fetch_add(&program->added_count, 1, __ATOMIC_RELAXED);
	if (event->kind == RBX_EVENT_SERVER_LEFT_OUT)
		__atomic_fetch_add(&program->left_out_count, 1, __ATOMIC_RELAXED);
}

static void program_open(struct program *program, struct rbx_context *ctx, const char *servers)
{
	struct rbx_volume_options options;

	rbx_volume_options_defaults(&options);
	options.name = "db";
	options.event = note;
	options.user = program;
	if (rbx_volume_open(ctx, &program->volume, servers, 0, &options))
		fail_msg("%s", rbx_last_error());
}

static void expect_all(struct program *program)
{
	uint32_t i;

	for (i = 0; i < PAGES; i++)
		page_expect(program, i);
}

/* All servers are there again, and each slab has all its replicas. */
static void wait_until_whole(struct program *program, uint32_t restarts)
{
	uint32_t before = __atomic_load_n(&program->writes_count, __ATOMIC_RELAXED);
	struct rbx_volume_status status;

	tenant_wait(NULL, &program->down_count, restarts, false);
	tenant_wait(NULL, &program->added_count, restarts, false);
	do {
		usleep(1000);
		rbx_volume_status(program->volume, &status);
	} while (status.servers_up < SERVERS ||
		 status.slabs_whole + status.slabs_blank < status.slabs);
	assert_int_equal(status.slabs_lost, 0);
	tenant_wait(NULL, &program->writes_count, before + 1, false);
}

/* ---- What becomes of a server -----------------------------------------------------------------*/

static void restart(struct program *program, int index)
{
	char address[sizeof(processes[0].address)];

	(void)program;
	strcpy(address, processes[index].address);
	server_process_kill(&processes[index]);
	server_start(index, address);
}

/* The program has tried in vain before it is there again. */
static void restart_late(struct program *program, int index)
{
	uint32_t before = __atomic_load_n(&program->left_out_count, __ATOMIC_RELAXED);
	char address[sizeof(processes[0].address)];

	strcpy(address, processes[index].address);
	server_process_kill(&processes[index]);
	tenant_wait(NULL, &program->left_out_count, before + 1, false);
	server_start(index, address);
}

static void fall_silent(struct program *program, int index)
{
	uint32_t before = __atomic_load_n(&program->down_count, __ATOMIC_RELAXED);

	server_process_signal(&processes[index], SIGSTOP);
	tenant_wait(NULL, &program->down_count, before + 1, false);
	server_process_signal(&processes[index], SIGCONT);
}

/* ---- Tests ------------------------------------------------------------------------------------*/

/* The record names each server once, and none is missed. */
static void expect_all_to_be_members(struct rbx_context *ctx)
{
	struct rbx_volume_info info;

	assert_int_equal(rbx_volume_list(ctx, list, &info, 1), 1);
	assert_int_equal(info.servers, SERVERS);
	assert_int_equal(info.servers_there, SERVERS);
	assert_int_equal(info.servers_out, 0);
}

static void stays_whole(const char *servers, void (*harm)(struct program *program, int index))
{
	const struct rbx_volume_create_options two = { .size_bytes = sizeof(two),
						       .keep_s = UINT64_MAX,
						       .replicas = 2 };
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=2000");
	static struct program program;
	uint32_t i;

	memset(&program, 0, sizeof(program));
	if (rbx_volume_create(ctx, servers, "db", (uint64_t)PAGES * PAGE, &two))
		fail_msg("%s", rbx_last_error());
	program_open(&program, ctx, servers);
	assert_int_equal(pthread_create(&program.thread, NULL, program_run, &program), 0);
	for (i = 0; i < SERVERS; i++) {
		harm(&program, (int)i);
		wait_until_whole(&program, i + 1);
	}
	__atomic_store_n(&program.stop, 1, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(program.thread, NULL), 0);
	expect_all(&program);
	assert_int_equal(rbx_volume_close(program.volume), 0);

	expect_all_to_be_members(ctx);
	program_open(&program, ctx, list);
	expect_all(&program);
	assert_int_equal(rbx_volume_close(program.volume), 0);
	rbx_close(ctx);
}

/* None of the servers is one of those that it was made on. */
static void volume_stays_whole_while_its_servers_are_restarted(void **state)
{
	(void)state;
	stays_whole(pool, restart);
}

static void volume_stays_whole_while_its_servers_are_restarted_late(void **state)
{
	(void)state;
	stays_whole(pool, restart_late);
}

/* They are members as before, and come back by themselves: the servers are a list. */
static void volume_stays_whole_while_servers_with_memory_files_are_restarted(void **state)
{
	(void)state;
	stays_whole(list, restart);
}

static void volume_stays_whole_while_its_servers_are_out_of_reach(void **state)
{
	(void)state;
	stays_whole(list, fall_silent);
}

static void volume_stays_whole_while_servers_of_a_pool_are_out_of_reach(void **state)
{
	(void)state;
	stays_whole(pool, fall_silent);
}

#define TEST(name, begin) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(volume_stays_whole_while_its_servers_are_restarted, begin),
		TEST(volume_stays_whole_while_its_servers_are_restarted_late, begin),
		TEST(volume_stays_whole_while_servers_with_memory_files_are_restarted,
		     begin_with_memory_files),
		TEST(volume_stays_whole_while_its_servers_are_out_of_reach, begin),
		TEST(volume_stays_whole_while_servers_of_a_pool_are_out_of_reach, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
