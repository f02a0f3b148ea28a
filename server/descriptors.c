/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * descriptors.c - raises the process's limit of open files, as far as it is allowed.
 *
 * Slabs and clients need open files. If the limit stays below what will probably be
 * needed, connections may take the descriptors of slabs; then a line is logged. If it is
 * too low for the slabs alone, that is an error.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

#include "lib/error.h"
#include "server/state.h"

/* Each lent slab is an open file, and the fabric may need another descriptor for it. A
 * queue pair may need one too; most clients have one or two. */
#define DESCRIPTORS_PER_SLAB 2
#define DESCRIPTORS_PER_CLIENT (2 + RBX_QUEUE_PAIRS_MAX)
#define DESCRIPTORS_OF_MOST_CLIENTS 4
#define DESCRIPTORS_BESIDE 1024 /* for the rest of the program */
#define DESCRIPTORS_BESIDE_MIN 128 /* of these, for untrusted clients */

int rbx_descriptors_reserve(const struct rbx_server *s,
			    const struct rbx_server_options *o)
{
	rlim_t clients = s->clients_max, slabs = rbx_slabs_of_memory(o);
	rlim_t of_slabs = DESCRIPTORS_PER_SLAB * slabs;
	rlim_t wanted = DESCRIPTORS_BESIDE + of_slabs +
			DESCRIPTORS_PER_CLIENT * clients;
	rlim_t needed = DESCRIPTORS_BESIDE_MIN + of_slabs +
			DESCRIPTORS_OF_MOST_CLIENTS * clients;
	char text[RBX_ERROR_TEXT_MAX];
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	if (limit.rlim_cur < wanted) {
		limit.rlim_cur = RBX_MIN(wanted, limit.rlim_max);
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= needed)
		return 0;
	snprintf(text, sizeof(text),
		 "%llu slabs and %llu clients need %llu open files and the limit is "
		 "%llu: raise ulimit -n, or take larger slabs (--slab) or fewer "
		 "clients (--clients)",
		 (unsigned long long)slabs, (unsigned long long)clients,
		 (unsigned long long)needed, (unsigned long long)limit.rlim_max);
	if (limit.rlim_cur < of_slabs)
		return rbx_error(-EINVAL, "%s", text);
	rbx_log(&s->log, "%s", text);
	return 0;
}
