/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fabric_rate.c - how many work requests a second a fabric carries by itself.
 *
 * A server process on processor 1 lends memory and does nothing. A client on processor 0
 * keeps `depth` work requests outstanding, posted as chains of which the last is signaled,
 * and polls. Nothing of RDMAbox above the fabric is used. It prints the median of five runs
 * and their spread. Before the runs one block is written, read back and compared.
 *
 * With --address the server is another process, started with --serve. This is how two
 * machines are measured.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fabric/fabric.h"

#define RUNS 5
#define DEPTH_MAX 1024
#define MEMORY_BYTES (64u << 20)

struct config {
	const char *fabric;
	const char *op;
	const char *pattern;
	const char *address; /* NULL: fork a server */
	uint32_t block_bytes;
	uint32_t depth;
	uint32_t chain;
	uint32_t run_ms;
	bool serve;
};

/* The server's private data. */
struct lent {
	uint64_t addr;
	uint32_t rkey;
	uint32_t reserved;
};

struct client {
	const struct rbx_fabric_ops *ops;
	struct rbx_device *device;
	struct rbx_cq *cq;
	struct rbx_qp *qp;
	struct rbx_mr *mr;
	struct lent lent;
	uint8_t *memory;
	uint32_t lkey;
	uint64_t next_block;
	uint32_t random;
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "fabric_rate: %s: %s\n", what, why);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void pin(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fprintf(stderr, "fabric_rate: cannot pin to processor %d\n",
			processor);
}

static const struct rbx_fabric_ops *fabric_find(const char *name)
{
#ifdef RBX_HAVE_VERBS
	if (!strcmp(name, "verbs"))
		return &rbx_fabric_verbs;
#endif
	if (!strncmp(name, "soft", 4))
		return &rbx_fabric_soft;
	die(name, "no such fabric here: soft, soft:tcp or verbs");
	return NULL;
}

static struct rbx_device *device_open(const struct config *config)
{
	struct rbx_device_options options = {
		.gid_index = -1,
		.same_host_mapping = !strcmp(config->fabric, "soft"),
	};
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_device *device;

	if (fabric_find(config->fabric)->open(&options, &device, error))
		die("open", error);
	return device;
}

/* Lends memory until the parent ends or a signal comes. */
static void serve(const struct config *config, const char *address,
		  int address_fd)
{
	struct rbx_device *device = device_open(config);
	const struct rbx_fabric_ops *ops = device->ops;
	struct rbx_conn_request *request;
	struct rbx_qp_init init = {
		.send_depth_count = 16,
		.recv_depth_count = 16,
		.max_sge = 1,
		.served = true,
	};
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_listener *listener;
	struct rbx_mr *mr;
	struct rbx_cq *cq;
	struct rbx_qp *qp;
	int fd;

	fd = memfd_create("fabric_rate", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, MEMORY_BYTES))
		die("memory file", strerror(errno));
	struct rbx_mr_init memory = {
		.addr = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_POPULATE, fd, 0),
		.length_bytes = MEMORY_BYTES,
		.rights = RBX_LOCAL_WRITE | RBX_REMOTE_READ | RBX_REMOTE_WRITE,
		.memory_fd = fd,
	};
	if (ops->register_memory(device, &memory, 1, &mr, error))
		die("register", error);
	if (ops->create_cq(device, 64, &cq, error))
		die("cq", error);
	init.send_cq = init.recv_cq = cq;
	if (ops->listen(device, address, &listener, error))
		die("listen", error);
	if (address_fd >= 0 &&
	    write(address_fd, listener->address, RBX_NAME_MAX) < 0)
		die("address", strerror(errno));
	struct lent lent = { (uintptr_t)mr->addr, mr->rkey, 0 };

	for (;;) {
		while (ops->get_request(listener, &request) == -EAGAIN)
			usleep(1000);
		if (ops->accept(request, &init, &lent, sizeof(lent), &qp,
				error))
			die("accept", error);
	}
}

static pid_t serve_in_child(const struct config *config, char *address)
{
	int ends[2];
	pid_t pid;

	if (pipe(ends))
		die("pipe", strerror(errno));
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(1);
		serve(config, "127.0.0.1:0", ends[1]);
	}
	if (pid < 0 || read(ends[0], address, RBX_NAME_MAX) != RBX_NAME_MAX)
		die("server", "did not start");
	close(ends[0]);
	close(ends[1]);
	return pid;
}

static void client_connect(struct client *client, const struct config *config,
			   const char *address)
{
	struct rbx_connect_init connect = {
		.address = address,
		.timeout_ms = 5000,
		.reply_data = &client->lent,
		.reply_data_max_bytes = sizeof(client->lent),
	};
	struct rbx_qp_init init = {
		.send_depth_count = config->depth,
		.recv_depth_count = 16,
		.max_sge = 1,
	};
	struct rbx_mr_init memory = {
		.length_bytes = (size_t)config->block_bytes * config->depth,
		.rights = RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};
	char error[RBX_ERROR_TEXT_MAX] = "";

	client->device = device_open(config);
	client->ops = client->device->ops;
	client->memory = mmap(NULL, memory.length_bytes,
			      PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	memory.addr = client->memory;
	if (client->ops->create_cq(client->device, 2 * DEPTH_MAX, &client->cq,
				   error))
		die("cq", error);
	client->lkey = client->device->caps.any_lkey;
	if (!client->device->caps.has_any_lkey) {
		if (client->ops->register_memory(client->device, &memory, 1,
						 &client->mr, error))
			die("register", error);
		client->lkey = client->mr->lkey;
	}
	init.send_cq = init.recv_cq = client->cq;
	if (client->ops->connect(client->device, &init, &connect, &client->qp,
				 error))
		die("connect", error);
}

static uint64_t block_choose(struct client *client, const struct config *config)
{
	uint64_t blocks = MEMORY_BYTES / config->block_bytes;

	if (!strcmp(config->pattern, "adjacent"))
		return client->next_block++ % blocks;
	client->random = client->random * 1664525u + 1013904223u;
	return (client->random >> 8) % blocks;
}

/* Posts one chain, from place `first` of the local memory on. */
static void chain_post(struct client *client, const struct config *config,
		       uint32_t first, uint8_t opcode)
{
	struct rbx_wr wrs[DEPTH_MAX], *bad;
	struct rbx_sge sges[DEPTH_MAX];
	uint32_t i;

	for (i = 0; i < config->chain; i++) {
		sges[i] = (struct rbx_sge){
			.addr = (uintptr_t)client->memory +
				(uint64_t)(first + i) * config->block_bytes,
			.length_bytes = config->block_bytes,
			.lkey = client->lkey,
		};
		wrs[i] = (struct rbx_wr){
			.next = i + 1 < config->chain ? &wrs[i + 1] : NULL,
			.wr_id = first,
			.sges = &sges[i],
			.sge_count = 1,
			.opcode = opcode,
			.flags = i + 1 < config->chain ? 0 : RBX_WR_SIGNALED,
			.rkey = client->lent.rkey,
			.remote_addr = client->lent.addr +
				block_choose(client, config) *
				config->block_bytes,
		};
	}
	if (client->ops->post_send(client->qp, wrs, &bad))
		die("post", "refused");
}

static uint64_t chain_wait(struct client *client)
{
	struct rbx_wc wc;

	while (!client->ops->poll(client->cq, &wc, 1))
		;
	if (wc.status)
		die("completion", strerror(-wc.status));
	return wc.wr_id;
}

static void verify(struct client *client, const struct config *config)
{
	struct config one = *config;
	uint32_t i;

	one.chain = 1;
	one.pattern = "adjacent";
	for (i = 0; i < config->block_bytes; i++)
		client->memory[i] = (uint8_t)(i * 7 + 1);
	chain_post(client, &one, 0, RBX_OP_WRITE);
	chain_wait(client);
	memset(client->memory, 0, config->block_bytes);
	client->next_block = 0;
	chain_post(client, &one, 0, RBX_OP_READ);
	chain_wait(client);
	for (i = 0; i < config->block_bytes; i++)
		if (client->memory[i] != (uint8_t)(i * 7 + 1))
			die("verify", "what was read is not what was written");
}

/* Nanoseconds per work request. */
static double run(struct client *client, const struct config *config)
{
	uint8_t opcode = strcmp(config->op, "read") ? RBX_OP_WRITE : RBX_OP_READ;
	uint64_t start_ns = now_ns(), end_ns, done = 0;
	uint32_t outstanding = 0;

	for (; outstanding + config->chain <= config->depth;
	     outstanding += config->chain)
		chain_post(client, config, outstanding, opcode);
	do {
		chain_post(client, config, (uint32_t)chain_wait(client),
			   opcode);
		done += config->chain;
		end_ns = now_ns();
	} while (end_ns - start_ns < config->run_ms * 1000000ull);
	for (; outstanding; outstanding -= config->chain)
		chain_wait(client);
	return (double)(end_ns - start_ns) / (double)done;
}

/* The limit of a same-host mapping: memcpy to and from shared memory. */
static double run_memcpy(const struct client *client,
			 const struct config *config)
{
	uint8_t *shared = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	bool reading = !strcmp(config->op, "read");
	uint64_t start_ns = now_ns(), end_ns, done = 0;
	struct client chooser = *client;
	uint32_t i;

	do {
		for (i = 0; i < config->depth; i++, done++) {
			uint8_t *far = shared + block_choose(&chooser, config) *
						config->block_bytes;
			uint8_t *near = client->memory +
					(size_t)i * config->block_bytes;

			if (reading)
				memcpy(near, far, config->block_bytes);
			else
				memcpy(far, near, config->block_bytes);
		}
		end_ns = now_ns();
	} while (end_ns - start_ns < config->run_ms * 1000000ull);
	munmap(shared, MEMORY_BYTES);
	return (double)(end_ns - start_ns) / (double)done;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print(const struct client *client, const struct config *config,
		  double *ns)
{
	qsort(ns, RUNS, sizeof(*ns), compare);
	printf("{\"fabric\": \"%s\", \"mapped\": %s, \"op\": \"%s\", "
	       "\"pattern\": \"%s\", \"block_bytes\": %u, \"depth\": %u, "
	       "\"chain\": %u, \"us_per_op\": %.3f, \"us_per_op_min\": %.3f, "
	       "\"us_per_op_max\": %.3f, \"ops_per_s\": %.0f, "
	       "\"mb_per_s\": %.0f}\n",
	       config->fabric, client->qp && client->qp->mapped ? "true" :
	       "false", config->op, config->pattern, config->block_bytes,
	       config->depth, config->chain, ns[RUNS / 2] / 1e3, ns[0] / 1e3,
	       ns[RUNS - 1] / 1e3, 1e9 / ns[RUNS / 2],
	       config->block_bytes * 1e3 / ns[RUNS / 2]);
}

static const char usage[] =
	"usage: fabric_rate [--fabric soft|soft:tcp|verbs|memcpy]\n"
	"                   [--op write|read] [--pattern adjacent|random]\n"
	"                   [--block BYTES] [--depth N] [--chain N] [--run-ms N]\n"
	"                   [--address HOST:PORT [--serve]]\n";

static uint32_t number(const char *text, uint32_t max)
{
	unsigned long value = strtoul(text, NULL, 0);

	if (!value || value > max)
		die(text, "is out of range");
	return (uint32_t)value;
}

static void config_parse(struct config *config, int argc, char **argv)
{
	static const struct option options[] = {
		{ "fabric", required_argument, NULL, 'f' },
		{ "op", required_argument, NULL, 'o' },
		{ "pattern", required_argument, NULL, 'p' },
		{ "block", required_argument, NULL, 'b' },
		{ "depth", required_argument, NULL, 'd' },
		{ "chain", required_argument, NULL, 'c' },
		{ "run-ms", required_argument, NULL, 'r' },
		{ "address", required_argument, NULL, 'a' },
		{ "serve", no_argument, NULL, 's' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'f': config->fabric = optarg; break;
		case 'o': config->op = optarg; break;
		case 'p': config->pattern = optarg; break;
		case 'b': config->block_bytes = number(optarg, 1 << 22); break;
		case 'd': config->depth = number(optarg, DEPTH_MAX); break;
		case 'c': config->chain = number(optarg, DEPTH_MAX); break;
		case 'r': config->run_ms = number(optarg, 60000); break;
		case 'a': config->address = optarg; break;
		case 's': config->serve = true; break;
		default: fputs(usage, stderr); exit(2);
		}
	}
	if (!config->chain || config->chain > config->depth)
		config->chain = config->depth;
}

int main(int argc, char **argv)
{
	struct config config = {
		.fabric = "soft:tcp",
		.op = "write",
		.pattern = "adjacent",
		.block_bytes = 4096,
		.depth = 32,
		.run_ms = 200,
	};
	char address[RBX_NAME_MAX];
	struct client client = { 0 };
	double ns[RUNS];
	pid_t child = 0;
	int i;

	config_parse(&config, argc, argv);
	if (config.serve)
		serve(&config, config.address, -1);
	if (!strcmp(config.fabric, "memcpy")) {
		pin(0);
		client.memory = calloc(config.depth, config.block_bytes);
		for (i = 0; i < RUNS; i++)
			ns[i] = run_memcpy(&client, &config);
		print(&client, &config, ns);
		return 0;
	}
	if (config.address)
		snprintf(address, sizeof(address), "%s", config.address);
	else
		child = serve_in_child(&config, address);
	pin(0);
	client_connect(&client, &config, address);
	verify(&client, &config);
	run(&client, &config);
	for (i = 0; i < RUNS; i++)
		ns[i] = run(&client, &config);
	print(&client, &config, ns);
	if (child) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	return 0;
}
