/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages over libfabric's tcp provider: what bench/talk.c does over an endpoint of
 * RDMAbox, with the same command line and the same JSON.
 *
 *	talk-libfabric --serve HOST:PORT
 *	talk-libfabric --connect HOST:PORT --what latency|rate [--bytes N] [--chain N]
 *	               [--runtime S]
 *
 * latency: one message at a time, which the server sends back; half of the way there
 * and back. rate: chains of messages, of which the last alone completes, RATE_CHAINS of
 * them under way. All of a chain but the last carry FI_MORE, and what fits is injected,
 * so that no other completion is made. In libfabric's favour a completion need only say
 * that the chain is on its way; RDMAbox's says that it has been received. Both ends poll
 * without a pause.
 *
 * The server does not know what is wanted: who connects says so in its private data.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "histogram.h"
#include "libfabric_link.h"

#define BYTES_MAX 4096u
#define DEPTH 256u
#define CHAIN_MAX 128u
#define RATE_CHAINS 2u	/* with CHAIN_MAX they fill the depth */
#define BATCH 64u
#define WARM_NS 300000000u

struct talk {
	struct link link;
	char *memory;		/* what is sent, then DEPTH receives */
	struct fi_context contexts[DEPTH + 1];
	uint32_t bytes, chain;
	double runtime_s;
	uint64_t inject_flag;	/* FI_INJECT if messages are short enough */
};

/* From who connects to who listens. */
struct wish {
	uint32_t bytes;
	uint32_t answers;	/* 1: each message is sent back */
};

static void need(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "talk-libfabric: %s: %s\n", what, strerror(abs(rc)));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void open_all(struct talk *talk, const char *address, bool serve)
{
	char host[64], port[8];
	const struct link_options options = {
		.fabric = "tcp",
		.host = host,
		.port = port,
		.serve = serve,
		.caps = FI_MSG,
		.depth = DEPTH,
		.wait = FI_WAIT_NONE,
	};

	need(sscanf(address, "%63[^:]:%7s", host, port) == 2 ? 0 : -EINVAL, address);
	need(link_open(&talk->link, &options), "no provider");
	talk->memory = calloc(DEPTH + 1, BYTES_MAX);
	need(talk->memory ? 0 : -ENOMEM, "no memory");
}

/* Before any message, when their length is known. */
static void decide(struct talk *talk)
{
	if (talk->bytes <= talk->link.info->tx_attr->inject_size)
		talk->inject_flag = FI_INJECT;
}

/* Slots are numbered from 1; a completion names its slot by the context. */
static void receive_one(struct talk *talk, uint32_t slot)
{
	need((int)fi_recv(talk->link.ep, talk->memory + (size_t)slot * BYTES_MAX, BYTES_MAX,
			  NULL, 0, &talk->contexts[slot]),
	     "cannot receive");
}

static void receive_all(struct talk *talk)
{
	for (uint32_t slot = 1; slot <= DEPTH; slot++)
		receive_one(talk, slot);
}

/* Messages, of which the last alone completes if is_told. */
static void send_chain(struct talk *talk, uint32_t count, bool is_told)
{
	struct iovec bytes = { talk->memory, talk->bytes };
	struct fi_msg message = {
		.msg_iov = &bytes,
		.iov_count = 1,
		.context = &talk->contexts[0],
	};
	ssize_t rc;

	for (uint32_t i = 0; i < count; i++) {
		bool is_last = i + 1 == count;
		uint64_t flags = talk->inject_flag | (is_last ? 0 : FI_MORE) |
				 (is_last && is_told ? FI_COMPLETION : 0);

		do {
			rc = fi_sendmsg(talk->link.ep, &message, flags);
			if (rc == -FI_EAGAIN) /* makes progress, and takes nothing */
				(void)fi_cq_read(talk->link.cq, NULL, 0);
		} while (rc == -FI_EAGAIN);
		need((int)rc, "cannot send");
	}
}

/* At least one; 0: the connection is over. */
static uint32_t poll_some(struct talk *talk, struct fi_cq_entry *entries)
{
	ssize_t count;

	do
		count = fi_cq_read(talk->link.cq, entries, BATCH);
	while (count == -FI_EAGAIN);
	return count < 0 ? 0 : (uint32_t)count;
}

/* Posts the receives again that have completed. */
static void receive_again(struct talk *talk, const struct fi_cq_entry *entries, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		receive_one(talk, (uint32_t)((struct fi_context *)entries[i].op_context -
					     talk->contexts));
}

/* The event that is waited for; private data is at its end. */
static void wait_event(struct talk *talk, uint32_t wanted, void *entry, size_t len)
{
	struct fi_cq_entry none;
	struct fid *failed;
	uint32_t event;
	ssize_t rc;

	do {
		(void)fi_cq_read(talk->link.cq, &none, 0); /* progress */
		rc = link_event(&talk->link, &event, entry, len, &failed);
	} while (rc == -FI_EAGAIN);
	need(rc < 0 ? (int)rc : event == wanted ? 0 : -EPROTO, "no connection");
}

static void serve(struct talk *talk, const char *address)
{
	struct fi_cq_entry entries[BATCH];
	union {
		struct fi_eq_cm_entry entry;
		uint8_t bytes[sizeof(struct fi_eq_cm_entry) + sizeof(struct wish)];
	} asked;
	struct wish wish;
	uint32_t count;
	uint16_t port;

	need(link_listen(&talk->link, &port), "cannot listen");
	printf("ready %.*s:%u\n", (int)strcspn(address, ":"), address, port);
	fflush(stdout);
	wait_event(talk, FI_CONNREQ, &asked, sizeof(asked));
	memcpy(&wish, asked.entry.data, sizeof(wish));
	need(wish.bytes > BYTES_MAX ? -EPROTO : 0, "no wish");
	talk->bytes = wish.bytes;
	decide(talk);
	need(link_endpoint(&talk->link, asked.entry.info, &talk->link.ep), "no endpoint");
	receive_all(talk);
	need(fi_accept(talk->link.ep, NULL, 0), "cannot accept");
	fi_freeinfo(asked.entry.info);
	wait_event(talk, FI_CONNECTED, &asked, sizeof(asked));
	while ((count = poll_some(talk, entries)) != 0) {
		receive_again(talk, entries, count);
		if (wish.answers)
			send_chain(talk, count, false);
	}
}

static void latency(struct talk *talk)
{
	static struct histogram histogram;
	struct fi_cq_entry entries[BATCH];
	uint64_t begin_ns = now_ns(), sent_ns = begin_ns, back_ns;
	uint64_t until_ns = begin_ns + WARM_NS + (uint64_t)(talk->runtime_s * 1e9);

	do {
		send_chain(talk, 1, false);
		need(poll_some(talk, entries) == 1 ? 0 : -EIO, "no answer");
		receive_again(talk, entries, 1);
		back_ns = now_ns();
		if (sent_ns - begin_ns > WARM_NS)
			histogram_record(&histogram, (back_ns - sent_ns) / 2);
		sent_ns = back_ns;
	} while (back_ns < until_ns);
	printf("{\"lat_us\": {\"p50\": %.3f, \"p99\": %.3f}}\n",
	       (double)histogram_percentile_ns(&histogram, 0.5) / 1e3,
	       (double)histogram_percentile_ns(&histogram, 0.99) / 1e3);
}

static void rate(struct talk *talk)
{
	struct fi_cq_entry entries[BATCH];
	uint64_t begin_ns = now_ns(), at_ns = begin_ns, counted_from_ns = 0;
	uint64_t until_ns = begin_ns + WARM_NS + (uint64_t)(talk->runtime_s * 1e9);
	uint64_t messages = 0;

	for (uint32_t i = 0; i < RATE_CHAINS; i++)
		send_chain(talk, talk->chain, true);
	while (at_ns < until_ns) {
		uint32_t count = poll_some(talk, entries);

		need(count ? 0 : -EIO, "the connection is over");
		at_ns = now_ns();
		if (counted_from_ns)
			messages += (uint64_t)count * talk->chain;
		else if (at_ns - begin_ns > WARM_NS)
			counted_from_ns = at_ns;
		while (count--)
			send_chain(talk, talk->chain, true);
	}
	printf("{\"messages_per_s\": %.0f}\n",
	       (double)messages * 1e9 / (double)(at_ns - counted_from_ns));
}

static void ask(struct talk *talk, bool is_latency)
{
	const struct wish wish = { talk->bytes, is_latency };
	struct fi_eq_cm_entry entry;

	decide(talk);
	need(link_endpoint(&talk->link, talk->link.info, &talk->link.ep), "no endpoint");
	receive_all(talk);
	need(fi_connect(talk->link.ep, talk->link.info->dest_addr, &wish, sizeof(wish)),
	     "cannot connect");
	wait_event(talk, FI_CONNECTED, &entry, sizeof(entry));
	if (is_latency)
		latency(talk);
	else
		rate(talk);
	fi_shutdown(talk->link.ep, 0);
}

static int usage(void)
{
	fprintf(stderr, "usage: talk-libfabric --serve|--connect HOST:PORT [--what latency|rate] [--bytes N] [--chain N] [--runtime S]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{ "serve", required_argument, NULL, 's' },
		{ "connect", required_argument, NULL, 'c' },
		{ "what", required_argument, NULL, 'w' },
		{ "bytes", required_argument, NULL, 'b' },
		{ "chain", required_argument, NULL, 'n' },
		{ "runtime", required_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	static struct talk talk = { .bytes = 64, .chain = 32, .runtime_s = 2 };
	const char *serves = NULL, *asks = NULL;
	bool is_latency = true;
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 's': serves = optarg; break;
		case 'c': asks = optarg; break;
		case 'w': is_latency = strcmp(optarg, "rate") != 0; break;
		case 'b': talk.bytes = (uint32_t)atoi(optarg); break;
		case 'n': talk.chain = (uint32_t)atoi(optarg); break;
		case 'r': talk.runtime_s = atof(optarg); break;
		default: return usage();
		}
	}
	if (!serves == !asks || talk.bytes > BYTES_MAX || talk.chain == 0 ||
	    talk.chain > CHAIN_MAX)
		return usage();
	open_all(&talk, serves ? serves : asks, serves);
	if (serves)
		serve(&talk, serves);
	else
		ask(&talk, is_latency);
	link_close(&talk.link);
	free(talk.memory);
	return 0;
}
