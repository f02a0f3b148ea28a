/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * metrics.c - Prometheus metrics of a memory server.
 *
 * A number that can fall is a gauge and keeps its name. One that only grows is a counter
 * and ends in _total. Units are base units and stand in the name: bytes, seconds. The
 * names are a promise to dashboards: packaging/grafana has one.
 *
 * A device that does not tell what clients read and write (a NIC) has no metrics of that:
 * a zero would be a lie.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include <rdmabox/rdmabox.h>

#include "cli/serve/metrics.h"

#define REFUSALS_MAX 64

struct metric {
	const char *name; /* after rdmabox_server_ */
	const char *type;
	const char *help;
	size_t offset; /* in struct rbx_server_stats */
};

#define METRIC(name, type, field, help) \
	{ name, type, help, offsetof(struct rbx_server_stats, field) }

static const struct metric metrics[] = {
	METRIC("uptime_seconds", "gauge", uptime_s, "Seconds since the start."),
	METRIC("memory_bytes", "gauge", memory_bytes, "Bytes to lend in all."),
	METRIC("lent_bytes", "gauge", lent_bytes, "Bytes lent now."),
	METRIC("slab_bytes", "gauge", slab_bytes, "Bytes of a slab."),
	METRIC("slabs_lent", "gauge", slabs_lent, "Slabs lent now."),
	METRIC("clients", "gauge", clients, "Clients connected now."),
	METRIC("draining", "gauge", draining,
	       "1 if nothing more is lent, since the server drains."),
	METRIC("sessions_total", "counter", sessions, "Clients ever admitted."),
	METRIC("slabs_mapped_total", "counter", slabs_mapped,
	       "Slabs ever lent."),
	METRIC("slabs_unmapped_total", "counter", slabs_unmapped,
	       "Slabs given back by clients."),
	METRIC("slabs_revoked_total", "counter", slabs_revoked,
	       "Slabs taken back from clients."),
	METRIC("leases_expired_total", "counter", leases_expired,
	       "Clients that were not heard of for a lease."),
	METRIC("heartbeats_total", "counter", heartbeats,
	       "Heartbeats answered."),
	METRIC("messages_received_total", "counter", messages_received,
	       "Messages that programs of clients sent."),
	METRIC("messages_sent_total", "counter", messages_sent,
	       "Messages sent to programs of clients."),
};

#define OVER_TCP ", over TCP; those through a mapping are not seen."

static const struct metric traffic[] = {
	METRIC("reads_total", "counter", reads,
	       "Work requests of clients that read" OVER_TCP),
	METRIC("read_bytes_total", "counter", read_bytes,
	       "Bytes that clients read" OVER_TCP),
	METRIC("writes_total", "counter", writes,
	       "Work requests of clients that wrote" OVER_TCP),
	METRIC("written_bytes_total", "counter", written_bytes,
	       "Bytes that clients wrote" OVER_TCP),
};

static void print_head(FILE *text, const char *name, const char *type,
		       const char *help)
{
	fprintf(text, "# HELP rdmabox_%s %s\n# TYPE rdmabox_%s %s\n", name,
		help, name, type);
}

static void print_metrics(FILE *text, const struct rbx_server_stats *stats,
			  const struct metric *list, size_t count)
{
	char name[64];

	for (size_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "server_%s", list[i].name);
		print_head(text, name, list[i].type, list[i].help);
		fprintf(text, "rdmabox_%s %" PRIu64 "\n", name,
			*(const uint64_t *)((const char *)stats +
					    list[i].offset));
	}
}

static void print_refusals(FILE *text, struct rbx_server *server)
{
	struct rbx_server_refusal refusals[REFUSALS_MAX];
	size_t count = rbx_server_refusals_get(server, refusals, REFUSALS_MAX);

	print_head(text, "server_refused_total", "counter",
		   "Messages and connections refused, by reason.");
	for (size_t i = 0; i < count && i < REFUSALS_MAX; i++) {
		fputs("rdmabox_server_refused_total{reason=\"", text);
		for (const char *at = refusals[i].reason; *at; at++)
			fputc(tolower((unsigned char)*at), text);
		fprintf(text, "\"} %" PRIu64 "\n", refusals[i].count);
	}
}

/* Nanoseconds as seconds, to the last digit: no locale has a say in it. */
static void print_seconds(FILE *text, uint64_t ns)
{
	fprintf(text, "%" PRIu64 ".%09" PRIu64, ns / 1000000000,
		ns % 1000000000);
}

static void print_answers(FILE *text, struct rbx_server *server)
{
	static const char *const bounds[] = { "1e-05", "0.0001", "0.001",
					      "0.01", "0.1", "1" };
	struct rbx_server_answers answers;

	_Static_assert(sizeof(bounds) / sizeof(bounds[0]) ==
			       RBX_SERVER_ANSWER_BOUNDS_COUNT,
		       "a text for each bound");
	rbx_server_answers_get(server, &answers);
	print_head(text, "server_answer_seconds", "histogram",
		   "How long answers to control messages took.");
	for (size_t i = 0; i < RBX_SERVER_ANSWER_BOUNDS_COUNT; i++)
		fprintf(text,
			"rdmabox_server_answer_seconds_bucket{le=\"%s\"} %" PRIu64
			"\n",
			bounds[i], answers.within[i]);
	fprintf(text,
		"rdmabox_server_answer_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n"
		"rdmabox_server_answer_seconds_sum ",
		answers.count);
	print_seconds(text, answers.sum_ns);
	fprintf(text, "\nrdmabox_server_answer_seconds_count %" PRIu64 "\n",
		answers.count);
}

void metrics_print(FILE *text, struct rbx_server *server)
{
	struct rbx_server_stats stats;

	rbx_server_stats_get(server, &stats);
	print_head(text, "build_info", "gauge",
		   "Always 1; the version is the label's.");
	fputs("rdmabox_build_info{version=\"" RBX_VERSION "\"} 1\n", text);
	print_metrics(text, &stats, metrics,
		      sizeof(metrics) / sizeof(metrics[0]));
	if (stats.reads != RBX_SERVER_NOT_SEEN)
		print_metrics(text, &stats, traffic,
			      sizeof(traffic) / sizeof(traffic[0]));
	print_refusals(text, server);
	print_answers(text, server);
}
