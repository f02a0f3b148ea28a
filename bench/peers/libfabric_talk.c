/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages over libfabric's tcp provider: the same as bench/talk.c does over an endpoint of
 * RDMAbox. talking.h describes the options and what is measured.
 *
 * All messages of a chain except the last have FI_MORE, and short ones are injected, so no
 * other completion is made. In libfabric's favour a completion only means that the chain is
 * on its way; RDMAbox's means that it has been received.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfabric_link.h"
#include "talking.h"

struct talk {
	struct link link;
	char *memory;		/* what is sent, then TALK_DEPTH receives */
	struct fi_context contexts[TALK_DEPTH + 1];
	uint32_t bytes;
	uint64_t inject_flag;	/* FI_INJECT if messages are short enough */
	struct fi_cq_entry entries[TALK_BATCH];	/* of the last poll */
	uint32_t entries_count;
};

static void need(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "talk-libfabric: %s: %s\n", what, strerror(abs(rc)));
	exit(1);
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
		.depth = TALK_DEPTH,
		.wait = FI_WAIT_NONE,
	};

	need(sscanf(address, "%63[^:]:%7s", host, port) == 2 ? 0 : -EINVAL, address);
	need(link_open(&talk->link, &options), "no provider");
	talk->memory = calloc(TALK_DEPTH + 1, TALK_BYTES_MAX);
	need(talk->memory ? 0 : -ENOMEM, "no memory");
}

/* Called before any message, when their length is known. */
static void decide(struct talk *talk)
{
	if (talk->bytes <= talk->link.info->tx_attr->inject_size)
		talk->inject_flag = FI_INJECT;
}

/* Slots are numbered from 1; a completion names its slot by the context. */
static void receive_one(struct talk *talk, uint32_t slot)
{
	char *buffer = talk->memory + (size_t)slot * TALK_BYTES_MAX;

	need((int)fi_recv(talk->link.ep, buffer, TALK_BYTES_MAX, NULL, 0, &talk->contexts[slot]),
	     "cannot receive");
}

static void receive_all(struct talk *talk)
{
	for (uint32_t slot = 1; slot <= TALK_DEPTH; slot++)
		receive_one(talk, slot);
}

static void send_chain(void *end, uint32_t count, bool is_told)
{
	struct talk *talk = end;
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

static uint32_t poll_some(void *end)
{
	struct talk *talk = end;
	ssize_t count;

	do
		count = fi_cq_read(talk->link.cq, talk->entries, TALK_BATCH);
	while (count == -FI_EAGAIN);
	talk->entries_count = count < 0 ? 0 : (uint32_t)count;
	return talk->entries_count;
}

static void receive_again(void *end)
{
	struct talk *talk = end;

	for (uint32_t i = 0; i < talk->entries_count; i++)
		receive_one(talk, (uint32_t)((struct fi_context *)talk->entries[i].op_context -
					     talk->contexts));
}

static struct talk_way way_of(struct talk *talk)
{
	return (struct talk_way){ talk, send_chain, poll_some, receive_again };
}

/* Waits for this event; private data is at its end. */
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
	const struct talk_way way = way_of(talk);
	union {
		struct fi_eq_cm_entry entry;
		uint8_t bytes[sizeof(struct fi_eq_cm_entry) + sizeof(struct talk_wish)];
	} asked;
	struct talk_wish wish;
	uint16_t port;

	need(link_listen(&talk->link, &port), "cannot listen");
	printf("ready %.*s:%u\n", (int)strcspn(address, ":"), address, port);
	fflush(stdout);
	wait_event(talk, FI_CONNREQ, &asked, sizeof(asked));
	memcpy(&wish, asked.entry.data, sizeof(wish));
	need(wish.bytes > TALK_BYTES_MAX ? -EPROTO : 0, "no valid options came from the client");
	talk->bytes = wish.bytes;
	decide(talk);
	need(link_endpoint(&talk->link, asked.entry.info, &talk->link.ep), "no endpoint");
	receive_all(talk);
	need(fi_accept(talk->link.ep, NULL, 0), "cannot accept");
	fi_freeinfo(asked.entry.info);
	wait_event(talk, FI_CONNECTED, &asked, sizeof(asked));
	talk_serve(&way, &wish);
}

static void ask(struct talk *talk, const struct talk_options *options)
{
	const struct talk_wish wish = { options->bytes, options->is_latency };
	const struct talk_way way = way_of(talk);
	struct fi_eq_cm_entry entry;

	talk->bytes = options->bytes;
	decide(talk);
	need(link_endpoint(&talk->link, talk->link.info, &talk->link.ep), "no endpoint");
	receive_all(talk);
	need(fi_connect(talk->link.ep, talk->link.info->dest_addr, &wish, sizeof(wish)),
	     "cannot connect");
	wait_event(talk, FI_CONNECTED, &entry, sizeof(entry));
	need(talk_measure(&way, options), "the connection is over");
	fi_shutdown(talk->link.ep, 0);
}

int main(int argc, char **argv)
{
	static struct talk talk;
	struct talk_options options;
	int code = talk_options_parse(argc, argv, &options);

	if (code)
		return code;
	open_all(&talk, options.serve ? options.serve : options.connect, options.serve);
	if (options.serve)
		serve(&talk, options.serve);
	else
		ask(&talk, &options);
	link_close(&talk.link);
	free(talk.memory);
	return 0;
}
