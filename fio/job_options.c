// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The engine's options: a table for fio, and their translation for the library.
 *
 * An option has the name that it has in rdmabox-bench(1), with _ instead of -. If the
 * library's text option has another name, that works too. The text is passed to the
 * library unchanged. So the library reports errors in it, and an option means the same in
 * all programs. Options that are not given keep the library's defaults.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fio.h>
#include <optgroup.h>

#include "job_options.h"

#define FIELD(member) .off1 = offsetof(struct job_options, member)
#define ENGINE .category = FIO_OPT_C_ENGINE, .group = FIO_OPT_G_INVALID

/* An option that the library takes as text; `other` is the library's name or NULL. */
#define TEXT(option, other, long_name, what)                             \
	{ .name = #option, .alias = other, .lname = long_name,           \
	  .type = FIO_OPT_STR_STORE, FIELD(option), .help = what, ENGINE }

#define YES_OR_NO(option, long_name, what)                               \
	{ .name = #option, .lname = long_name, .type = FIO_OPT_BOOL,     \
	  FIELD(option), .def = "0", .help = what, ENGINE }

struct fio_option job_option_table[] = {
	TEXT(servers, NULL, "Memory servers", "HOST:PORT,HOST:PORT"),
	{
		.name = "volume",
		.lname = "Size of the volume",
		.type = FIO_OPT_STR_VAL,
		FIELD(volume_bytes),
		.help = "Bytes to borrow; as much as the job needs unless given",
		ENGINE,
	},
	TEXT(volume_name, NULL, "Name of the volume",
	     "A named volume that there is, in place of a new one"),
	YES_OR_NO(take_over, "Take over", "Take it from the program that has it open"),
	{
		.name = "replicas",
		.lname = "Copies of the data",
		.type = FIO_OPT_INT,
		FIELD(replicas),
		.minval = 1,
		.maxval = 3,
		.def = "1",
		.help = "On as many servers, 1 to 3",
		ENGINE,
	},
	YES_OR_NO(checksums, "Checksums", "Keep and check a CRC32C of each 4 KiB"),
	YES_OR_NO(on_demand, "Borrow on demand",
		  "Borrow a slab at its first write; trim gives it back"),
	YES_OR_NO(urgent_reads, "Urgent reads",
		  "Reads leave before writes to the same server"),
	YES_OR_NO(counters, "Counters", "Tell work requests and the like in the end"),
	YES_OR_NO(insecure, "No secret", "No secret, even beyond loopback"),
	TEXT(secret_file, NULL, "Secret file", "The secret shared with the servers"),
	TEXT(credential, NULL, "Credential", "The name of the secret, if each client has its own"),
	TEXT(fabric, NULL, "Fabric", "auto, verbs, soft or soft:tcp"),
	TEXT(device, NULL, "Device", "NAME[:PORT] of verbs, or registered of soft"),
	TEXT(mode, NULL, "Mode", "single, doorbell, merge or hybrid"),
	TEXT(window, NULL, "Window", "Bytes in flight: off, SIZE, aimd, delay or auto"),
	TEXT(fragment, "fragment_bytes", "Fragment", "Longer requests are split"),
	TEXT(buffers, NULL, "Buffers", "region, staging, direct, cached or auto"),
	TEXT(polling, NULL, "Polling",
	     "busy, event, event-batch:N, hybrid, shared:M or adaptive[:RETRY[:BATCH]]"),
	TEXT(pollers, NULL, "Pollers", "1 to 16, peer or queue_pair"),
	TEXT(poll_cpu, "poll_cpu_percent", "CPU of polls that find nothing",
	     "Percent of an adaptive poller's time"),
	TEXT(qps, "queue_pairs", "Queue pairs", "To each server, 1 to 16"),
	TEXT(peer_timeout, "peer_timeout_ms", "Peer timeout",
	     "Milliseconds until a silent server is given up"),
	TEXT(overload, NULL, "Overload", "off or WORK_REQUESTS:NS; soft only"),
	{ .name = NULL },
};

/* The options that the library takes as text, by its own names. */
static const struct {
	const char *name;
	size_t offset;
} library_texts[] = {
	{ "secret_file", offsetof(struct job_options, secret_file) },
	{ "credential", offsetof(struct job_options, credential) },
	{ "fabric", offsetof(struct job_options, fabric) },
	{ "device", offsetof(struct job_options, device) },
	{ "mode", offsetof(struct job_options, mode) },
	{ "window", offsetof(struct job_options, window) },
	{ "fragment_bytes", offsetof(struct job_options, fragment) },
	{ "buffers", offsetof(struct job_options, buffers) },
	{ "polling", offsetof(struct job_options, polling) },
	{ "pollers", offsetof(struct job_options, pollers) },
	{ "poll_cpu_percent", offsetof(struct job_options, poll_cpu) },
	{ "queue_pairs", offsetof(struct job_options, qps) },
	{ "peer_timeout_ms", offsetof(struct job_options, peer_timeout) },
	{ "overload", offsetof(struct job_options, overload) },
};

static int set_text(struct rbx_options *options, const char *name, const char *value)
{
	char *text;
	int err;

	if (asprintf(&text, "%s=%s", name, value) < 0) {
		log_err("rdmabox: no memory for the option %s\n", name);
		return -ENOMEM;
	}
	err = rbx_options_set(options, text);
	free(text);
	if (err)
		log_err("rdmabox: %s\n", rbx_last_error());
	return err;
}

bool job_options_is_named(const struct job_options *job)
{
	return job->volume_name && *job->volume_name;
}

bool job_options_register_buffers(const struct job_options *job)
{
	return !job->buffers || !strcmp(job->buffers, "region");
}

/* buffers=region is a word of this engine, which the library does not know. pollers=0 is
 * refused, as nobody would poll. */
static int check_words(const struct job_options *job)
{
	if (job->pollers && !strcmp(job->pollers, "0")) {
		log_err("rdmabox: pollers=0: must be 1 to 16, peer or queue_pair\n");
		return -EINVAL;
	}
	if (job->secret_file && *job->secret_file && job->insecure) {
		log_err("rdmabox: secret_file and insecure exclude each other; give one of them\n");
		return -EINVAL;
	}
	return 0;
}

int job_options_library(const struct job_options *job,
			struct rbx_options *options)
{
	size_t at;
	int err = check_words(job);

	memset(options, 0, sizeof(*options)); /* options are compared by memcmp() */
	rbx_options_defaults(options);
	for (at = 0; !err &&
	     at < sizeof(library_texts) / sizeof(library_texts[0]); at++) {
		const char *name = library_texts[at].name;
		const char *value = *(char *const *)((const char *)job +
						     library_texts[at].offset);

		if (!value || (!strcmp(name, "buffers") && !strcmp(value, "region")))
			continue;
		err = set_text(options, name, value);
	}
	options->insecure = job->insecure;
	return err;
}

void job_options_volume(const struct job_options *job,
			struct rbx_volume_options *options)
{
	rbx_volume_options_defaults(options);
	options->replicas = job->replicas;
	options->checksums = job->checksums;
	options->on_demand = job->on_demand;
	options->name = job_options_is_named(job) ? job->volume_name : NULL;
	options->take_over = job->take_over;
}
