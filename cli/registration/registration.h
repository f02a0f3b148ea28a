/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * registration.h - the parts of rdmabox registration.
 *
 *	registration.c  reads a trace, and runs each policy with each budget over it
 *	options.c       the options, and what they may be
 *	unpack.c        opens a file, through zstd or gzip if it is packed
 *	trace.c         reads its lines, in any of three formats
 *	urls.c          a buffer for each URL of a web server's log
 *	bound.c         what one who knows the future would spend
 *	report.c        the table, and JSON
 */
#ifndef REGISTRATION_H
#define REGISTRATION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "cli/cli.h"
#include "core/region_auto.h"

#define REGISTRATION_PAGE_BYTES 4096u

/* Of one run: policies, sizes, and numbers of regions. */
#define REGISTRATION_LIST_MAX 16u
#define REGISTRATION_POLICIES (RBX_REGION_POLICIES + 1)

/* Bytes, or a part of what the trace touches. */
struct registration_budget {
	uint64_t bytes; /* 0: the part */
	double percent;
};

struct registration_options {
	char trace[4096];
	char json[4096]; /* "": none */
	const struct rbx_region_policy *policies[REGISTRATION_POLICIES];
	uint32_t policies_count;
	struct registration_budget budgets[REGISTRATION_LIST_MAX];
	uint32_t budgets_count;
	uint32_t regions[REGISTRATION_LIST_MAX]; /* none: as many as there are pages */
	uint32_t regions_count;
	struct rbx_region_cost cost;
};

struct registration_request {
	uint64_t addr;
	uint64_t length;
};

struct registration_trace {
	struct registration_request *requests;
	uint64_t count;
	uint64_t touched_bytes; /* in whole pages, each once */
};

/* What one policy came to, with one budget. */
struct registration_row {
	const char *policy;
	uint64_t bytes;
	uint32_t regions;
	struct rbx_regions_counters counters;
	uint64_t pinned_bytes_max;
	uint64_t bound_ns; /* the same for all with this budget */
};

extern struct registration_options registration_options;
extern const struct cli_command registration_command;

int cli_registration(int argc, char **argv);

/* A file as it is, or unpacked. */
struct registration_input {
	FILE *stream;
	const char *unpacker; /* NULL: it is not packed */
	pid_t pid;
};

/* Returns 0 or -errno; then reason says why. */
int registration_input_open(struct registration_input *input, const char *path, char *reason,
			    size_t reason_bytes);
/* Returns 0, or -errno if it could not be unpacked to its end; then reason says why.
 * is_read: to its end, so that this is worth saying. */
int registration_input_close(struct registration_input *input, const char *path, bool is_read,
			     char *reason, size_t reason_bytes);

/* Returns 0, or -errno after it has filled in the reason; then nothing has to be freed. */
int registration_trace_read(struct registration_trace *trace, const char *path, char *reason,
			    size_t reason_bytes);
void registration_trace_free(struct registration_trace *trace);

/* URLs and the largest response of each. */
struct registration_urls;
struct registration_urls *registration_urls_new(void);
void registration_urls_free(struct registration_urls *urls);
/* The number of a URL, counted from 0; UINT32_MAX: no memory. */
uint32_t registration_urls_note(struct registration_urls *urls, const char *url, size_t url_bytes,
				uint64_t response_bytes);
/* Gives each a buffer of whole pages, one after the other. Returns where the last one ends. */
uint64_t registration_urls_place(struct registration_urls *urls);
uint64_t registration_urls_addr(const struct registration_urls *urls, uint32_t url);

/* What the whole trace says of each moment. NULL: no memory. trace: borrowed. */
struct registration_future;
struct registration_future *registration_future_new(const struct registration_trace *trace);
void registration_future_free(struct registration_future *future);
/* Nanoseconds of an offline policy. Returns 0 or -ENOMEM. */
int registration_bound(struct registration_future *future, const struct rbx_regions_shape *shape,
		       uint64_t *bound_ns);

void registration_report_begin(const struct registration_trace *trace);
void registration_report_rows(const struct registration_row *rows, uint32_t count);
json_t *registration_report_json(const struct registration_trace *trace,
				 const struct registration_row *rows, uint32_t count);

#endif
