/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* talking.c - see talking.h. */
#include "talking.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "histogram.h"

#define WARM_NS 300000000u

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void talk_serve(const struct talk_way *way, const struct talk_wish *wish)
{
	uint32_t count;

	while ((count = way->poll(way->end)) != 0) {
		way->receive_again(way->end);
		if (wish->answers)
			way->send_chain(way->end, count, false);
	}
}

static int latency(const struct talk_way *way, double runtime_s)
{
	static struct histogram histogram;
	uint64_t begin_ns = now_ns(), sent_ns = begin_ns, back_ns;
	uint64_t until_ns = begin_ns + WARM_NS + (uint64_t)(runtime_s * 1e9);

	do {
		way->send_chain(way->end, 1, false);
		if (way->poll(way->end) != 1)
			return -ENOTCONN;
		way->receive_again(way->end);
		back_ns = now_ns();
		if (sent_ns - begin_ns > WARM_NS)
			histogram_record(&histogram, (back_ns - sent_ns) / 2);
		sent_ns = back_ns;
	} while (back_ns < until_ns);
	printf("{\"lat_us\": {\"p50\": %.3f, \"p99\": %.3f}}\n",
	       (double)histogram_percentile_ns(&histogram, 0.5) / 1e3,
	       (double)histogram_percentile_ns(&histogram, 0.99) / 1e3);
	return 0;
}

static int rate(const struct talk_way *way, uint32_t chain, double runtime_s)
{
	uint64_t begin_ns = now_ns(), at_ns = begin_ns, counted_from_ns = 0;
	uint64_t until_ns = begin_ns + WARM_NS + (uint64_t)(runtime_s * 1e9);
	uint64_t messages = 0;

	for (uint32_t i = 0; i < TALK_CHAINS; i++)
		way->send_chain(way->end, chain, true);
	while (at_ns < until_ns) {
		uint32_t count = way->poll(way->end);

		if (!count)
			return -ENOTCONN;
		at_ns = now_ns();
		if (counted_from_ns)
			messages += (uint64_t)count * chain;
		else if (at_ns - begin_ns > WARM_NS)
			counted_from_ns = at_ns;
		while (count--)
			way->send_chain(way->end, chain, true);
	}
	printf("{\"messages_per_s\": %.0f}\n",
	       (double)messages * 1e9 / (double)(at_ns - counted_from_ns));
	return 0;
}

int talk_measure(const struct talk_way *way, const struct talk_options *options)
{
	return options->is_latency ? latency(way, options->runtime_s) :
				     rate(way, options->chain, options->runtime_s);
}

static int usage(const char *program)
{
	fprintf(stderr, "usage: %s --serve|--connect HOST:PORT [--fabric NAME] [--what latency|rate] [--bytes N] [--chain N] [--runtime S]\n",
		program);
	return 2;
}

int talk_options_parse(int argc, char **argv, struct talk_options *options)
{
	static const struct option known[] = {
		{ "serve", required_argument, NULL, 's' },
		{ "connect", required_argument, NULL, 'c' },
		{ "fabric", required_argument, NULL, 'f' },
		{ "what", required_argument, NULL, 'w' },
		{ "bytes", required_argument, NULL, 'b' },
		{ "chain", required_argument, NULL, 'n' },
		{ "runtime", required_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	*options = (struct talk_options){
		.fabric = "auto",
		.is_latency = true,
		.bytes = 64,
		.chain = 32,
		.runtime_s = 2,
	};
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 's': options->serve = optarg; break;
		case 'c': options->connect = optarg; break;
		case 'f': options->fabric = optarg; break;
		case 'w': options->is_latency = strcmp(optarg, "rate") != 0; break;
		case 'b': options->bytes = (uint32_t)atoi(optarg); break;
		case 'n': options->chain = (uint32_t)atoi(optarg); break;
		case 'r': options->runtime_s = atof(optarg); break;
		default: return usage(argv[0]);
		}
	}
	if (!options->serve == !options->connect ||
	    options->bytes > TALK_BYTES_MAX || options->chain == 0 ||
	    options->chain > TALK_CHAIN_MAX)
		return usage(argv[0]);
	return 0;
}
