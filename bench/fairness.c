/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much do seven light peers get beside a heavy one that would take everything?
 *
 * Eight servers in this process, over TCP, and one context with a narrow window. The heavy
 * peer keeps 64 writes of 128 KiB outstanding. The light ones keep pages outstanding: first a
 * few each, like a program that pages, then so many that all peers have a backlog. Prints
 * each peer's bytes, rate and longest wait. A fair window gives the light ones all they ask
 * for, and equal bytes to all peers with a backlog.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include <rdmabox/rdmabox.h>
#include <rdmabox/server.h>

#define PEERS 8
#define SLAB_BYTES (4u << 20)
#define HEAVY_BYTES (128u << 10)
#define LIGHT_BYTES 4096u
#define SLOTS_MAX 256u

struct peer;

struct slot {
	struct rbx_request request;
	struct peer *peer;
	uint64_t begin_ns;
};

struct peer {
	struct rbx_server *server;
	struct rbx_peer *peer;
	struct rbx_remote *remote;
	uint32_t length_bytes;
	uint32_t depth;
	uint64_t requests; /* changed only by the poller, as all below */
	uint64_t longest_ns;
	struct slot slots[SLOTS_MAX];
};

struct bench {
	struct rbx_options options;
	struct rbx_context *ctx;
	double runtime_s;
	const char *json_path;
	struct peer peers[PEERS];
	json_t *loads;
};

static struct bench bench;
static atomic_uint outstanding;
static atomic_bool counting, stop;
static char payload[HEAVY_BYTES];

static void fail(const char *what)
{
	fprintf(stderr, "fairness: %s: %s\n", what, rbx_last_error());
	exit(2);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void submit(struct slot *slot)
{
	struct rbx_request *request = &slot->request;

	slot->begin_ns = now_ns();
	if (rbx_remote_submit(slot->peer->remote, &request, 1))
		fail("submit");
}

static void complete(struct rbx_request *request)
{
	struct slot *slot = request->user;
	struct peer *peer = slot->peer;
	uint64_t took_ns = now_ns() - slot->begin_ns;

	if (request->status)
		fail("a write failed");
	if (atomic_load(&counting)) {
		peer->requests++;
		if (took_ns > peer->longest_ns)
			peer->longest_ns = took_ns;
	}
	if (atomic_load(&stop))
		atomic_fetch_sub(&outstanding, 1);
	else
		submit(slot);
}

static void open_peer(struct peer *peer)
{
	struct rbx_server_options options;

	rbx_server_options_defaults(&options);
	strcpy(options.listen, "127.0.0.1:0");
	strcpy(options.fabric, "soft:tcp");
	options.slab_bytes = SLAB_BYTES;
	options.memory_bytes = SLAB_BYTES;
	if (rbx_server_start(&peer->server, &options))
		fail("server");
	if (rbx_peer_connect(bench.ctx, &peer->peer,
			     rbx_server_address(peer->server)) ||
	    rbx_borrow(peer->peer, &peer->remote, SLAB_BYTES))
		fail("peer");
}

static void close_peer(struct peer *peer)
{
	rbx_return(peer->remote);
	rbx_peer_close(peer->peer);
	rbx_server_stop(peer->server);
}

static void start_load(struct peer *peer, uint32_t length_bytes, uint32_t depth)
{
	peer->length_bytes = length_bytes;
	peer->depth = depth;
	peer->requests = 0;
	peer->longest_ns = 0;
	for (uint32_t i = 0; i < depth; i++) {
		struct slot *slot = &peer->slots[i];

		slot->peer = peer;
		slot->request = (struct rbx_request){
			.op = RBX_WRITE,
			.flags = RBX_NO_MERGE,
			.length_bytes = length_bytes,
			.offset = (uint64_t)i * length_bytes % SLAB_BYTES,
			.buf = payload,
			.complete = complete,
			.user = slot,
		};
		atomic_fetch_add(&outstanding, 1);
		submit(slot);
	}
}

static void report(const char *name, double elapsed_s)
{
	json_t *peers = json_array();

	printf("\n%s\n  %-6s %9s %6s %12s %10s %12s\n", name, "peer", "request",
	       "depth", "requests/s", "MB/s", "longest us");
	for (int i = 0; i < PEERS; i++) {
		const struct peer *peer = &bench.peers[i];
		double rate = peer->requests / elapsed_s;
		double mb = rate * peer->length_bytes / 1e6;

		printf("  %-6s %9u %6u %12.0f %10.1f %12.0f\n",
		       i ? "light" : "heavy", peer->length_bytes, peer->depth,
		       rate, mb, peer->longest_ns / 1e3);
		json_array_append_new(
			peers, json_pack("{si si sf sf sf}", "block_bytes",
					 (int)peer->length_bytes, "depth",
					 (int)peer->depth, "iops", rate,
					 "mb_per_s", mb, "longest_us",
					 peer->longest_ns / 1e3));
	}
	json_array_append_new(bench.loads, json_pack("{ss so}", "load", name,
						     "peers", peers));
}

static void sleep_s(double seconds)
{
	usleep((useconds_t)(seconds * 1e6));
}

/* heavy_depth 0: only the light ones. */
static void measure(const char *name, uint32_t heavy_depth,
		    uint32_t light_depth)
{
	uint64_t begin_ns;
	double elapsed_s;

	atomic_store(&stop, false);
	for (int i = 0; i < PEERS; i++)
		start_load(&bench.peers[i], i ? LIGHT_BYTES : HEAVY_BYTES,
			   i ? light_depth : heavy_depth);
	sleep_s(bench.runtime_s / 4);
	begin_ns = now_ns();
	atomic_store(&counting, true);
	sleep_s(bench.runtime_s);
	atomic_store(&counting, false);
	elapsed_s = (now_ns() - begin_ns) / 1e9;
	atomic_store(&stop, true);
	while (atomic_load(&outstanding))
		usleep(1000);
	report(name, elapsed_s);
}

static void usage(FILE *to)
{
	fprintf(to, "usage: fairness [--window W] [--runtime S] [--json FILE|-]\n");
}

static void parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "window", required_argument, NULL, 'w' },
		{ "runtime", required_argument, NULL, 'r' },
		{ "json", required_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	char window[64] = "window=512K";
	bool is_known = true;
	int found;

	bench.runtime_s = 2;
	while ((found = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (found == 'h') {
			usage(stdout);
			exit(0);
		}
		is_known &= found != '?';
		if (found == 'w')
			snprintf(window, sizeof(window), "window=%s", optarg);
		else if (found == 'r')
			bench.runtime_s = atof(optarg);
		else if (found == 'j')
			bench.json_path = optarg;
	}
	rbx_options_defaults(&bench.options);
	strcpy(bench.options.fabric, "soft:tcp");
	if (rbx_options_set(&bench.options, window)) {
		fprintf(stderr, "fairness: %s\n", rbx_last_error());
		exit(2);
	}
	if (!is_known || optind != argc || bench.runtime_s <= 0) {
		usage(stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	int failed = 0;

	parse(argc, argv);
	bench.loads = json_array();
	if (rbx_open(&bench.ctx, &bench.options))
		fail("open");
	for (int i = 0; i < PEERS; i++)
		open_peer(&bench.peers[i]);
	if (bench.json_path && !strcmp(bench.json_path, "-"))
		stdout = stderr;
	printf("window %s, soft:tcp, %d servers in this process\n",
	       bench.options.window, PEERS);
	measure("light peers alone, 4 outstanding each", 0, 4);
	measure("the same beside a heavy peer", 64, 4);
	measure("all with a backlog", 64, SLOTS_MAX);
	for (int i = 0; i < PEERS; i++)
		close_peer(&bench.peers[i]);
	rbx_close(bench.ctx);
	if (bench.json_path)
		failed = strcmp(bench.json_path, "-") ?
				 json_dump_file(bench.loads, bench.json_path,
						JSON_INDENT(2)) :
				 json_dumpfd(bench.loads, 1, JSON_INDENT(2));
	json_decref(bench.loads);
	return failed ? 1 : 0;
}
