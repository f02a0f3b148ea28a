/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * machine.c - what the library and the server need besides from their machine: random bytes,
 * memory, a device, a log.
 */
#include "sim/host/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/fabric_choice.h"
#include "server/host_memory.h"
#include "server/huge_pages.h"
#include "server/log.h"
#include "sim/fiber.h"
#include "sim/host/wrap.h"
#include "sim/random.h"

static struct rbx_random bytes;
static const struct rbx_sim_fabric *fabric;
static struct rbx_host_memory memories[RBX_SIM_NODES_MAX];
static FILE *log_file;

void rbx_sim_machines_init(uint64_t seed, const struct rbx_sim_fabric *with)
{
	rbx_sim_random_split(&bytes, seed, "bytes", 0);
	fabric = with;
	rbx_sim_machines_have(RBX_SIM_MEMORY_BYTES);
}

void rbx_sim_machines_have(uint64_t memory_bytes)
{
	for (uint32_t i = 0; i < RBX_SIM_NODES_MAX; i++)
		memories[i] = (struct rbx_host_memory){
			.total_bytes = memory_bytes,
			.available_bytes = memory_bytes,
		};
}

void rbx_sim_log_to(FILE *file)
{
	log_file = file;
}

ssize_t __wrap_getrandom(void *buf, size_t size, unsigned int flags)
{
	uint8_t *to = buf;

	(void)flags;
	for (size_t i = 0; i < size; i++)
		to[i] = (uint8_t)rbx_random_below(&bytes, 256);
	return (ssize_t)size;
}

pid_t __wrap_gettid(void)
{
	return 1;
}

int rbx_fabric_choose(const char *name, const char *device, int gid_index,
		      const char *address, struct rbx_fabric_choice *choice)
{
	(void)name;
	(void)device;
	(void)gid_index;
	(void)address;
	memset(choice, 0, sizeof(*choice));
	choice->ops = fabric->ops;
	snprintf(choice->why, sizeof(choice->why), "simulated");
	return 0;
}

void rbx_sim_memory_left(uint32_t node, uint64_t available_bytes)
{
	memories[node].available_bytes = available_bytes;
}

/* Huge pages of the real machine are not used. */
uint64_t rbx_huge_pages_free(void)
{
	return 0;
}

bool rbx_host_memory_read(struct rbx_host_memory *memory)
{
	*memory = memories[rbx_sim_node()];
	return true;
}

void rbx_log(const struct rbx_log *log, const char *format, ...)
{
	va_list args;

	(void)log;
	if (!log_file)
		return;
	fprintf(log_file, "%12llu %3u server says: ",
		(unsigned long long)rbx_sim_now(), rbx_sim_node());
	va_start(args, format);
	vfprintf(log_file, format, args);
	va_end(args);
	fputc('\n', log_file);
}

void rbx_log_hostile(struct rbx_hostile_log *log, const char *peer_name,
		     const char *what, uint64_t now_ns)
{
	(void)now_ns;
	rbx_log(log->log, "refused %s: %s", peer_name, what);
}
