/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What does a rebuild cost requests, and how fast is it when none come? One run, for
 * bench/rebuild, which repeats it.
 *
 * Three servers are processes of their own, on loopback, and have a volume with two replicas.
 * Pages are read and written at random all the time: first while all is well, then while what a
 * server had is made anew, which was killed. Then nothing is asked any more, until the volume is
 * whole. Each page has its number, and reads check it.
 *
 * Before that this program copies cells itself, as many at a time as a rebuild does: to memory
 * that is there (`plain`), which is the link's own rate; and to memory that servers lend
 * meanwhile (`lending`), as they do for a rebuild. They zero it first, and that takes their CPU,
 * so this is what a rebuild could do. Memory is asked for ahead, as a rebuild does.
 */
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include <rdmabox/rdmabox.h>
#include <rdmabox/server.h>

#define SERVERS 3
#define PAGE_BYTES 4096u
#define CELL_BYTES (128u << 10)
#define COPIES 8u
#define SLAB_BYTES_MAX (64u << 20) /* as usual, */
#define SLABS_MIN 8u /* or so many */
#define SLABS_AHEAD 2u /* as a rebuild */
#define DEPTH_MAX 256u
#define SAMPLES_MAX (8u << 20)
#define BEGIN_BYTES (2u << 20) /* copies do not yield any more */
#define PATIENCE_S 60.0

struct slot {
	struct rbx_request request;
	uint64_t begin_ns;
	uint64_t random;
	char *page;
};

static struct {
	uint32_t depth;
	int server_cpu;
	double runtime_s;
	uint64_t volume_bytes;
	uint64_t copy_rate;
} options = { .depth = 16, .server_cpu = -1, .runtime_s = 2, .volume_bytes = 512ull << 20 };

static uint64_t slab_bytes;
static pid_t servers[SERVERS];
static char addresses[SERVERS][64];
static struct rbx_context *ctx;
static struct rbx_volume *volume;
static struct slot slots[DEPTH_MAX];
static uint32_t *samples; /* ns */
static atomic_uint samples_count, outstanding;
static atomic_bool counting, stop;

static void fail(const char *what)
{
	fprintf(stderr, "rebuild_load: %s: %s\n", what, rbx_last_error());
	exit(2);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_s(double seconds)
{
	usleep((useconds_t)(seconds * 1e6));
}

/* ---- Servers -------------------------------------------------------------------------*/

/* In the child, until it is killed. */
static void serve(int to)
{
	struct rbx_server_options server_options;
	struct rbx_server *server;
	cpu_set_t cpus;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&cpus);
	if (options.server_cpu >= 0) {
		CPU_SET(options.server_cpu, &cpus);
		if (sched_setaffinity(0, sizeof(cpus), &cpus))
			fail("CPU of the servers");
	}
	rbx_server_options_defaults(&server_options);
	strcpy(server_options.listen, "127.0.0.1:0");
	strcpy(server_options.fabric, "soft:tcp");
	server_options.slab_bytes = slab_bytes;
	server_options.memory_bytes = 2 * options.volume_bytes;
	if (rbx_server_start(&server, &server_options))
		fail("server");
	dprintf(to, "%s\n", rbx_server_address(server));
	for (;;)
		pause();
}

static void server_start(uint32_t index)
{
	int ends[2];
	ssize_t length;

	if (pipe(ends))
		fail("pipe");
	servers[index] = fork();
	if (servers[index] < 0)
		fail("fork");
	if (!servers[index])
		serve(ends[1]);
	close(ends[1]);
	length = read(ends[0], addresses[index], sizeof(addresses[index]) - 1);
	if (length <= 1)
		exit(2); /* the child has said why */
	addresses[index][length - 1] = 0;
	close(ends[0]);
}

/* ---- Requests -------------------------------------------------------------------------*/

static void cells_do(struct rbx_volume *of, enum rbx_op op, char *cells, uint64_t offset)
{
	struct rbx_request requests[COPIES], *list[COPIES];
	uint32_t i;

	for (i = 0; i < COPIES; i++) {
		requests[i] = (struct rbx_request){
			.op = op,
			.length_bytes = CELL_BYTES,
			.offset = offset + i * CELL_BYTES,
			.buf = cells + i * CELL_BYTES,
		};
		list[i] = &requests[i];
	}
	if (rbx_submit(of, list, COPIES))
		fail("submit");
	for (i = 0; i < COPIES;) {
		struct rbx_request *done[COPIES];
		int count = rbx_reap(ctx, done, COPIES, -1);

		if (count < 0)
			fail("reap");
		i += (uint32_t)count;
	}
	for (i = 0; i < COPIES; i++)
		if (requests[i].status)
			fail("a cell");
}

static void page_number(char *page, uint64_t number)
{
	memcpy(page, &number, sizeof(number));
}

static void fill(struct rbx_volume *of, char *cells, uint64_t end)
{
	uint64_t offset;
	uint32_t at;

	for (offset = 0; offset < end; offset += COPIES * CELL_BYTES) {
		for (at = 0; at < COPIES * CELL_BYTES; at += PAGE_BYTES)
			page_number(cells + at, (offset + at) / PAGE_BYTES);
		cells_do(of, RBX_WRITE, cells, offset);
	}
}

static void submit(struct slot *slot)
{
	struct rbx_request *request = &slot->request;
	uint64_t page;

	slot->random = slot->random * 6364136223846793005ull + 1442695040888963407ull;
	page = (slot->random >> 24) % (options.volume_bytes / PAGE_BYTES);
	request->op = slot->random >> 20 & 1 ? RBX_READ : RBX_WRITE;
	request->offset = page * PAGE_BYTES;
	if (request->op == RBX_WRITE)
		page_number(slot->page, page);
	slot->begin_ns = now_ns();
	if (rbx_submit(volume, &request, 1))
		fail("submit");
}

static void complete(struct rbx_request *request)
{
	struct slot *slot = request->user;
	uint64_t took_ns = now_ns() - slot->begin_ns, number;

	memcpy(&number, slot->page, sizeof(number));
	if (request->status || number != request->offset / PAGE_BYTES) {
		fprintf(stderr, "rebuild_load: page %llu: status %d, contents of %llu\n",
			(unsigned long long)(request->offset / PAGE_BYTES), request->status,
			(unsigned long long)number);
		exit(1);
	}
	if (atomic_load(&counting)) {
		uint32_t at = atomic_fetch_add(&samples_count, 1);

		if (at < SAMPLES_MAX)
			samples[at] = took_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)took_ns;
	}
	if (atomic_load(&stop))
		atomic_fetch_sub(&outstanding, 1);
	else
		submit(slot);
}

static void load_start(char *pages)
{
	uint32_t i;

	for (i = 0; i < options.depth; i++) {
		struct slot *slot = &slots[i];

		slot->random = i;
		slot->page = pages + i * PAGE_BYTES;
		slot->request = (struct rbx_request){
			.length_bytes = PAGE_BYTES,
			.buf = slot->page,
			.complete = complete,
			.user = slot,
		};
		atomic_fetch_add(&outstanding, 1);
		submit(slot);
	}
}

static void load_stop(void)
{
	atomic_store(&stop, true);
	while (atomic_load(&outstanding))
		usleep(1000);
}

/* ---- What is measured ------------------------------------------------------------------*/

static uint64_t rebuilt_bytes(bool *is_whole)
{
	struct rbx_volume_status status;

	rbx_volume_status(volume, &status);
	if (is_whole)
		*is_whole = status.slabs_whole == status.slabs;
	return status.rebuilt_bytes;
}

static int compare(const void *a, const void *b)
{
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

	return (one > other) - (one < other);
}

static json_t *window(void)
{
	uint64_t begin_ns = now_ns(), rebuilt = rebuilt_bytes(NULL);
	uint32_t count;
	double seconds;

	atomic_store(&samples_count, 0);
	atomic_store(&counting, true);
	sleep_s(options.runtime_s);
	atomic_store(&counting, false);
	seconds = (now_ns() - begin_ns) / 1e9;
	rebuilt = rebuilt_bytes(NULL) - rebuilt;
	usleep(1000);
	count = atomic_load(&samples_count);
	if (!count || count > SAMPLES_MAX)
		fail("too few requests, or too many to count");
	qsort(samples, count, sizeof(*samples), compare);
	return json_pack("{sf sf sf sf}", "iops", count / seconds, "p50_us",
			 samples[count / 2] / 1e3, "p99_us", samples[(uint64_t)count * 99 / 100] / 1e3,
			 "rebuilt_mb_per_s", rebuilt / seconds / 1e6);
}

/* ---- Cells that this program copies ----------------------------------------------------*/

static struct {
	struct rbx_volume *to;
	uint64_t end;
	atomic_ulong at;
} lent;

/* Has each slab lent by a write of its last page, which is copied to later. */
static void *ask_ahead(void *page)
{
	uint64_t slab, slab_end;

	for (slab = 0; slab < lent.end; slab += slab_bytes) {
		slab_end = slab + slab_bytes;
		while (slab > atomic_load(&lent.at) + SLABS_AHEAD * slab_bytes)
			usleep(100);
		if (rbx_write(lent.to, page, PAGE_BYTES, slab_end - PAGE_BYTES))
			fail("memory ahead");
	}
	return NULL;
}

static void cells_copy(struct rbx_volume *from, struct rbx_volume *to, uint64_t offset, char *cells,
		       uint64_t end)
{
	uint64_t at;

	for (at = 0; at < end; at += COPIES * CELL_BYTES) {
		atomic_store(&lent.at, at);
		cells_do(from, RBX_READ, cells, at);
		cells_do(to, RBX_WRITE, cells, offset + at);
	}
}

static double mb_per_s(uint64_t bytes, uint64_t begin_ns)
{
	return bytes * 1e3 / (now_ns() - begin_ns);
}

static void copy_plainly(const char *list, char *cells, json_t *found)
{
	uint64_t begin_ns, half = options.volume_bytes / 2;
	struct rbx_volume_options on_demand;
	struct rbx_volume *from;
	pthread_t ahead;

	if (rbx_volume_open(ctx, &from, list, options.volume_bytes, NULL))
		fail("the other volume");
	fill(from, cells, half);
	begin_ns = now_ns();
	cells_copy(from, from, half, cells, half);
	json_object_set_new(found, "plain_mb_per_s", json_real(mb_per_s(half, begin_ns)));

	rbx_volume_options_defaults(&on_demand);
	on_demand.on_demand = 1;
	lent.end = half;
	if (rbx_volume_open(ctx, &lent.to, list, half, &on_demand))
		fail("the volume that is lent meanwhile");
	begin_ns = now_ns();
	if (pthread_create(&ahead, NULL, ask_ahead, cells + COPIES * CELL_BYTES))
		fail("thread");
	cells_copy(from, lent.to, 0, cells, half);
	json_object_set_new(found, "lending_mb_per_s", json_real(mb_per_s(half, begin_ns)));
	pthread_join(ahead, NULL);
	rbx_volume_close(lent.to);
	rbx_volume_close(from);
}

/* From when something is copied on. */
static void rebuild_await(void)
{
	uint64_t begin_ns = now_ns();

	while (!rebuilt_bytes(NULL)) {
		if ((now_ns() - begin_ns) / 1e9 > PATIENCE_S)
			fail("nothing is rebuilt");
		usleep(1000);
	}
}

/* Nothing else is asked. As long as copies yield it does not count. */
static double idle_mb_per_s(void)
{
	uint64_t stop_ns = now_ns(), begin_ns = 0, stop_bytes, begin_bytes = 0, bytes;
	bool is_whole;

	stop_bytes = rebuilt_bytes(NULL);
	do {
		usleep(500);
		bytes = rebuilt_bytes(&is_whole);
		if (!begin_ns && bytes >= stop_bytes + BEGIN_BYTES) {
			begin_ns = now_ns();
			begin_bytes = bytes;
		}
		if ((now_ns() - stop_ns) / 1e9 > PATIENCE_S)
			fail("not whole in time");
	} while (!is_whole);
	if (bytes == begin_bytes || !begin_ns)
		fail("whole too soon: take a larger --volume or a shorter --runtime");
	return (bytes - begin_bytes) * 1e3 / (now_ns() - begin_ns);
}

static void parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "depth", required_argument, NULL, 'd' },
		{ "server-cpu", required_argument, NULL, 's' },
		{ "runtime", required_argument, NULL, 'r' },
		{ "volume", required_argument, NULL, 'v' },
		{ "copy-rate", required_argument, NULL, 'c' },
		{ 0 },
	};
	bool is_known = true;
	int found;

	while ((found = getopt_long(argc, argv, "", names, NULL)) != -1) {
		is_known &= found != '?';
		if (found == 'd')
			options.depth = (uint32_t)atoi(optarg);
		else if (found == 's')
			options.server_cpu = atoi(optarg);
		else if (found == 'r')
			options.runtime_s = atof(optarg);
		else if (found == 'v')
			options.volume_bytes = strtoull(optarg, NULL, 0) << 20;
		else if (found == 'c')
			options.copy_rate = strtoull(optarg, NULL, 0) << 20;
	}
	if (!is_known || optind != argc || options.runtime_s <= 0 || !options.depth ||
	    options.depth > DEPTH_MAX || !options.volume_bytes) {
		fprintf(stderr, "usage: rebuild_load [--depth N] [--server-cpu N] [--runtime S] "
				"[--volume MIB] [--copy-rate MIB]\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct rbx_options context_options;
	struct rbx_volume_options volume_options;
	char list[SERVERS * 64 + 8], *memory;
	json_t *found = json_object();
	uint32_t i;

	parse(argc, argv);
	slab_bytes = options.volume_bytes / SLABS_MIN;
	if (slab_bytes > SLAB_BYTES_MAX)
		slab_bytes = SLAB_BYTES_MAX;
	for (i = 0; i < SERVERS; i++)
		server_start(i);
	snprintf(list, sizeof(list), "%s,%s,%s", addresses[0], addresses[1], addresses[2]);
	rbx_options_defaults(&context_options);
	strcpy(context_options.fabric, "soft:tcp");
	rbx_volume_options_defaults(&volume_options);
	volume_options.replicas = 2;
	volume_options.copy_rate = options.copy_rate;
	samples = calloc(SAMPLES_MAX, sizeof(*samples));
	memory = calloc(1, COPIES * CELL_BYTES + DEPTH_MAX * PAGE_BYTES);
	if (!samples || !memory || rbx_open(&ctx, &context_options))
		fail("open");
	copy_plainly(list, memory, found);
	if (rbx_volume_open(ctx, &volume, list, options.volume_bytes, &volume_options))
		fail("volume");
	fill(volume, memory, options.volume_bytes);
	load_start(memory + COPIES * CELL_BYTES);
	sleep_s(options.runtime_s / 4);
	json_object_set_new(found, "well", window());
	kill(servers[SERVERS - 1], SIGKILL);
	rebuild_await();
	json_object_set_new(found, "rebuilding", window());
	load_stop();
	json_object_set_new(found, "idle_mb_per_s", json_real(idle_mb_per_s()));
	rbx_volume_close(volume);
	rbx_close(ctx);
	json_dumpfd(found, 1, JSON_INDENT(2));
	json_decref(found);
	for (i = 0; i < SERVERS - 1; i++)
		kill(servers[i], SIGKILL);
	return 0;
}
