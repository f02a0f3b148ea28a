/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long does a client wait for its server's answer while the server frees the
 * gigabytes of another client that died?
 *
 * There are a server, a tenant that borrows and writes all of its memory, and this process,
 * which asks the server for its numbers every millisecond. The thread that answers also
 * answers heartbeats, in the same order. First the tenant is alive and silent. Then the
 * tenant is killed, and the server is asked until its lease for the tenant has run out and
 * all its memory has been freed. Prints both, with the longest answer of each.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include <rdmabox/rdmabox.h>
#include <rdmabox/server.h>

#include "core/histogram.h"
#include "lib/session/sessions.h"

#define SLAB_BYTES (64u << 20)
#define WRITE_BYTES (1u << 20)
#define LEASE_MS 2000
#define PAUSE_NS 1000000 /* between two questions */
#define FREED_WITHIN_S 60

struct answers {
	struct rbx_histogram histogram;
	uint64_t count;
};

static uint64_t memory_bytes = 8ull << 30;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "dead_client: %s: %s\n", what, rbx_last_error());
	exit(2);
}

/* ---- The other two processes: each prints one line when it is ready ----------------- */

static void serve(int ready_fd)
{
	struct rbx_server_options options;
	struct rbx_server *server;
	const char *address;

	rbx_server_options_defaults(&options);
	strcpy(options.listen, "127.0.0.1:0");
	strcpy(options.fabric, "soft:tcp");
	options.slab_bytes = SLAB_BYTES;
	options.memory_bytes = memory_bytes;
	options.lease_ms = LEASE_MS;
	if (rbx_server_start(&server, &options))
		fail("server");
	address = rbx_server_address(server);
	if (write(ready_fd, address, strlen(address)) < 0)
		exit(2);
	pause();
}

static void dwell(const char *address, int ready_fd)
{
	static char payload[WRITE_BYTES];
	struct rbx_options options;
	struct rbx_context *ctx;
	struct rbx_volume *volume;

	rbx_options_defaults(&options);
	strcpy(options.fabric, "soft:tcp");
	if (rbx_open(&ctx, &options) ||
	    rbx_volume_open(ctx, &volume, address, memory_bytes, NULL))
		fail("tenant");
	memset(payload, 0x5a, sizeof(payload));
	for (uint64_t at = 0; at < memory_bytes; at += WRITE_BYTES)
		if (rbx_write(volume, payload, WRITE_BYTES, at))
			fail("tenant's write");
	if (write(ready_fd, "x", 1) < 0)
		exit(2);
	pause();
}

/* Starts a child that runs one of them; returns what it prints. */
static pid_t start(const char *address, char *said, size_t size)
{
	int ends[2];
	ssize_t length;
	pid_t child;

	if (pipe(ends) || (child = fork()) < 0) {
		perror("dead_client");
		exit(2);
	}
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		if (address)
			dwell(address, ends[1]);
		else
			serve(ends[1]);
	}
	close(ends[1]);
	length = read(ends[0], said, size - 1);
	close(ends[0]);
	if (length <= 0)
		exit(2); /* it has printed the reason */
	said[length] = '\0';
	return child;
}

/* ---- Questions and answers -----------------------------------------------------------*/

/* Returns what the server still lends. */
static uint64_t ask(struct rbx_session *session, struct answers *answers)
{
	struct rbx_server_stats stats;
	uint64_t begin_ns = now_ns(), took_ns;

	if (rbx_session_stats(session, &stats))
		fail("question");
	took_ns = now_ns() - begin_ns;
	rbx_histogram_add(&answers->histogram, took_ns);
	answers->count++;
	nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
	return stats.lent_bytes;
}

static double us(uint64_t ns)
{
	return (double)ns / 1e3;
}

static json_t *report(const char *when, const struct answers *answers)
{
	uint64_t p50_ns = rbx_histogram_quantile(&answers->histogram, 500);
	uint64_t p99_ns = rbx_histogram_quantile(&answers->histogram, 990);

	printf("%-34s %9" PRIu64 " %10.0f %10.0f %12.0f\n", when, answers->count,
	       us(p50_ns), us(p99_ns), us(answers->histogram.max));
	return json_pack("{ss sI sf sf sf}", "when", when, "answers",
			 (json_int_t)answers->count, "p50_us", us(p50_ns), "p99_us",
			 us(p99_ns), "longest_us", us(answers->histogram.max));
}

/* ---- The session belongs to a program that uses nothing else -------------------------- */

static void lost(void *user, const char *reason)
{
	(void)user;
	fprintf(stderr, "dead_client: the server is lost: %s\n", reason);
	exit(1);
}

static void evict(void *user, const struct rbx_eviction *eviction)
{
	(void)eviction;
	(void)user;
}

static json_t *measure(const char *address, pid_t tenant)
{
	static struct answers alive, dead;
	const struct rbx_session_events events = { .lost = lost, .evict = evict };
	struct rbx_session *session;
	struct rbx_options options;
	struct rbx_context *ctx;
	json_t *rows = json_array();
	uint64_t until_ns;

	rbx_options_defaults(&options);
	strcpy(options.fabric, "soft:tcp");
	if (rbx_open(&ctx, &options) ||
	    rbx_session_open_name(rbx_context_sessions(ctx), address, &events, &session))
		fail("open");
	for (until_ns = now_ns() + LEASE_MS * 1000000ull;
	     now_ns() < until_ns;)
		ask(session, &alive);
	kill(tenant, SIGKILL);
	until_ns = now_ns() + FREED_WITHIN_S * 1000000000ull;
	while (ask(session, &dead))
		if (now_ns() > until_ns) {
			fprintf(stderr, "dead_client: not freed within %d s\n",
				FREED_WITHIN_S);
			exit(1);
		}
	/* Slabs that are not lent any more are still being emptied. */
	for (until_ns = now_ns() + LEASE_MS * 1000000ull;
	     now_ns() < until_ns;)
		ask(session, &dead);
	printf("%-34s %9s %10s %10s %12s\n", "", "answers", "p50 us", "p99 us",
	       "longest us");
	json_array_append_new(rows, report("the other client lives", &alive));
	json_array_append_new(rows, report("it is killed, and its memory freed", &dead));
	rbx_session_close(session);
	rbx_close(ctx);
	return rows;
}

static const char *parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "memory", required_argument, NULL, 'm' },
		{ "json", required_argument, NULL, 'j' },
		{ 0 },
	};
	const char *json = NULL;
	int found;

	while ((found = getopt_long(argc, argv, "", names, NULL)) != -1)
		if (found == 'j')
			json = optarg;
		else if (found != 'm' || rbx_size_parse(optarg, &memory_bytes) ||
			 !memory_bytes || memory_bytes % SLAB_BYTES)
			optind = argc + 1;
	if (optind != argc) {
		fprintf(stderr, "usage: dead_client [--memory SIZE] [--json FILE|-], "
				"SIZE in whole slabs of 64M\n");
		exit(2);
	}
	return json;
}

int main(int argc, char **argv)
{
	const char *json = parse(argc, argv);
	char address[128], said[8];
	pid_t server, tenant;
	json_t *rows;
	int failed = 0;

	if (json && !strcmp(json, "-"))
		stdout = stderr;
	server = start(NULL, address, sizeof(address));
	tenant = start(address, said, sizeof(said));
	printf("%" PRIu64 " MiB over soft:tcp, an answer each ms\n", memory_bytes >> 20);
	rows = measure(address, tenant);
	kill(server, SIGKILL);
	while (wait(NULL) > 0)
		;
	if (json)
		failed = strcmp(json, "-") ? json_dump_file(rows, json, JSON_INDENT(2)) :
					     json_dumpfd(rows, 1, JSON_INDENT(2));
	json_decref(rows);
	return failed ? 1 : 0;
}
