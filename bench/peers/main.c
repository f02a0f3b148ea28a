/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command line and the report of a peer program.
 *
 * Exit code 0: every request succeeded and every compared byte was right;
 * 1: errors during the run; 2: nothing was run, one line says why.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "load.h"
#include "peer.h"

#define EXIT_ERRORS 1
#define EXIT_USAGE 2

volatile sig_atomic_t peer_stop;

/* The stdout this program was started with; see report_stream_open. */
static FILE *report_stream;

static const char usage[] =
	"usage: %1$s --serve --listen ADDR:PORT --memory BYTES [--fabric tcp|verbs]\n"
	"       %1$s --connect ADDR:PORT --op read|write --pattern seq|rand --block BYTES\n"
	"               --depth N --runtime S --volume BYTES [--fabric tcp|verbs] [--chain N]\n"
	"               [--wait poll|event] [--verify] [--json FILE|-]\n";

static const struct option long_options[] = {
	{ "serve", no_argument, NULL, 's' },
	{ "listen", required_argument, NULL, 'a' },
	{ "memory", required_argument, NULL, 'm' },
	{ "connect", required_argument, NULL, 'a' },
	{ "op", required_argument, NULL, 'o' },
	{ "pattern", required_argument, NULL, 'p' },
	{ "block", required_argument, NULL, 'b' },
	{ "depth", required_argument, NULL, 'd' },
	{ "runtime", required_argument, NULL, 'r' },
	{ "volume", required_argument, NULL, 'v' },
	{ "fabric", required_argument, NULL, 'f' },
	{ "chain", required_argument, NULL, 'c' },
	{ "wait", required_argument, NULL, 'w' },
	{ "verify", no_argument, NULL, 'V' },
	{ "json", required_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

uint64_t peer_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

void peer_print_ready(const char *host, unsigned int port)
{
	fprintf(report_stream, "ready %s:%u\n", host, port);
	fflush(report_stream);
}

/*
 * Keeps stdout for scripts: UCX writes its log there, and one warning would break the JSON.
 * Whatever a library prints goes to stderr.
 */
static int report_stream_open(void)
{
	int fd = dup(STDOUT_FILENO);

	if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -errno;
	report_stream = fdopen(fd, "w");
	return report_stream ? 0 : -errno;
}

static void stop_on_signal(int signal_number)
{
	(void)signal_number;
	peer_stop = 1;
}

static int parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || *number < min || *number > max)
		return -EINVAL;
	return 0;
}

static int parse_address(const char *text, struct peer_options *options)
{
	const char *colon = strrchr(text, ':');
	size_t host_len = colon ? colon - text : 0;
	uint64_t port;

	if (!host_len || host_len >= sizeof(options->host) ||
	    parse_number(colon + 1, 0, UINT16_MAX, &port))
		return -EINVAL;
	memcpy(options->host, text, host_len);
	options->host[host_len] = 0;
	snprintf(options->port, sizeof(options->port), "%u", (unsigned int)port);
	return 0;
}

/* Decides which of two words @text is. */
static int parse_word(const char *text, const char *no, const char *yes, bool *is_yes)
{
	*is_yes = !strcmp(text, yes);
	return *is_yes || !strcmp(text, no) ? 0 : -EINVAL;
}

static int parse_fabric(const char *text, const char **fabric)
{
	const char *const *name;

	for (name = peer_traits.fabrics; *name; name++) {
		if (strcmp(text, *name))
			continue;
		*fabric = *name;
		return 0;
	}
	return -EINVAL;
}

static int parse_runtime(const char *text, double *runtime_s)
{
	char *end;

	*runtime_s = strtod(text, &end);
	return *end || !(*runtime_s > 0 && *runtime_s <= 3600) ? -EINVAL : 0;
}

static int parse_option(int letter, const char *text, struct peer_options *options)
{
	uint64_t number;
	int err = 0;

	switch (letter) {
	case 's':
		options->serve = true;
		return 0;
	case 'a':
		return parse_address(text, options);
	case 'm':
		return parse_number(text, 512, SIZE_MAX / 2, &options->memory_bytes);
	case 'o':
		return parse_word(text, "read", "write", &options->op_write);
	case 'p':
		return parse_word(text, "seq", "rand", &options->pattern_random);
	case 'b':
		err = parse_number(text, 512, 1 << 20, &number);
		options->block_bytes = number;
		return err ? err : number % 512 ? -EINVAL : 0;
	case 'd':
		err = parse_number(text, 1, PEER_DEPTH_MAX, &number);
		options->depth = number;
		return err;
	case 'r':
		return parse_runtime(text, &options->runtime_s);
	case 'v':
		return parse_number(text, 512, SIZE_MAX / 2, &options->volume_bytes);
	case 'f':
		return parse_fabric(text, &options->fabric);
	case 'c':
		err = parse_number(text, 1, peer_traits.chain_max, &number);
		options->chain = number;
		return err;
	case 'w':
		return parse_word(text, "poll", "event", &options->wait_event);
	case 'V':
		options->verify = true;
		return 0;
	case 'j':
		options->json = text;
		return 0;
	}
	return -EINVAL;
}

static int parse_command_line(int argc, char **argv, struct peer_options *options)
{
	int letter, index = 0;

	*options = (struct peer_options){
		.fabric = peer_traits.fabrics[0],
		.block_bytes = 4096,
		.depth = 32,
		.runtime_s = 2,
		.chain = 1,
	};
	while ((letter = getopt_long(argc, argv, "", long_options, &index)) != -1) {
		if (letter == '?' || letter == 'h') {
			fprintf(stderr, usage, argv[0]);
			return -EINVAL;
		}
		if (parse_option(letter, optarg, options)) {
			fprintf(stderr, "--%s %s: not accepted\n", long_options[index].name, optarg);
			return -EINVAL;
		}
	}
	if (options->wait_event && strcmp(options->fabric, "verbs")) {
		fprintf(stderr, "--wait event: a target moves no data over %s while it sleeps\n",
			options->fabric);
		return -EINVAL;
	}
	if (optind == argc && *options->host &&
	    (options->serve ? options->memory_bytes > 0 :
			      options->volume_bytes >= options->block_bytes))
		return 0;
	fprintf(stderr, usage, argv[0]);
	return -EINVAL;
}

static json_t *report_make(const struct peer_options *options, const struct load_result *result)
{
	const struct histogram *latency = &result->latency;
	double elapsed_s = result->elapsed_ns / 1e9;
	double iops = elapsed_s > 0 ? result->requests / elapsed_s : 0;
	char fabric[64];

	peer_fabric_name(options, fabric, sizeof(fabric));
	return json_pack("{ss ss ss ss si si si sf sI sf sf s{sf sf sf sf} sI sI sf}",
			 "fabric", fabric,
			 "polling", options->wait_event ? "event" : "busy",
			 "op", options->op_write ? "write" : "read",
			 "pattern", options->pattern_random ? "rand" : "seq",
			 "block_bytes", (int)options->block_bytes,
			 "depth", (int)options->depth,
			 "chain", (int)options->chain,
			 "runtime_s", elapsed_s,
			 "requests", (json_int_t)result->requests,
			 "iops", iops,
			 "mb_per_s", iops * options->block_bytes / 1e6,
			 "lat_us",
			 "p50", histogram_percentile_ns(latency, 0.5) / 1e3,
			 "p99", histogram_percentile_ns(latency, 0.99) / 1e3,
			 "p999", histogram_percentile_ns(latency, 0.999) / 1e3,
			 "max", latency->max_ns / 1e3,
			 "errors", (json_int_t)result->errors,
			 "verify_errors", (json_int_t)result->verify_errors,
			 "cpu_percent",
			 elapsed_s > 0 ? result->cpu_ns / (elapsed_s * 1e7) : 0);
}

/* Writes JSON to the named file or to stdout; if none was asked for, prints one line. */
static int report_print(const struct peer_options *options, const struct load_result *result)
{
	bool to_file = options->json && strcmp(options->json, "-");
	size_t flags = JSON_REAL_PRECISION(7) | (options->json ? JSON_INDENT(2) : 0);
	json_t *report = report_make(options, result);
	FILE *stream = to_file ? fopen(options->json, "w") : report_stream;
	int rc = -1;

	if (report && stream)
		rc = json_dumpf(report, stream, flags);
	if (stream && (fputc('\n', stream) == EOF || fclose(stream)))
		rc = -1;
	json_decref(report);
	if (rc)
		fprintf(stderr, "cannot write the report to %s: %s\n",
			to_file ? options->json : "stdout", strerror(errno));
	return rc;
}

static int run_client(const struct peer_options *options)
{
	/* Static because of its size: the histogram has some 30 KiB. */
	static struct load_result result;
	struct peer *peer;
	int err;

	err = peer_connect(options, &peer);
	if (err) {
		fprintf(stderr, "cannot use %llu bytes at %s:%s: %s\n",
			(unsigned long long)options->volume_bytes, options->host, options->port,
			strerror(-err));
		return EXIT_USAGE;
	}
	err = load_run(peer, options, &result);
	if (err) {
		fprintf(stderr, "cannot use the buffers of the load: %s\n", strerror(-err));
		return EXIT_USAGE;
	}
	if (report_print(options, &result))
		return EXIT_ERRORS;
	return result.errors || result.verify_errors ? EXIT_ERRORS : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = stop_on_signal };
	struct peer_options options;
	int err;

	if (parse_command_line(argc, argv, &options))
		return EXIT_USAGE;
	if (report_stream_open()) {
		fprintf(stderr, "cannot use stdout: %s\n", strerror(errno));
		return EXIT_USAGE;
	}
	if (!options.serve)
		return run_client(&options);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	err = peer_serve(&options);
	if (!err)
		return EXIT_SUCCESS;
	fprintf(stderr, "cannot serve at %s:%s: %s\n", options.host, options.port, strerror(-err));
	return EXIT_USAGE;
}
