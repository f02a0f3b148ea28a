/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * local_peer.h - a peer on this host that speaks to a soft device by hand, over
 * its local socket, and looks at every descriptor that it is given.
 */
#ifndef RBX_TESTS_LOCAL_PEER_H
#define RBX_TESTS_LOCAL_PEER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fabric/soft/frame.h"
#include "fabric/soft/limits.h"

#define LOCAL_PEER_FDS_MAX 16

struct local_peer {
	int fd;
	uint32_t sequence; /* of the next request */
	/* All that were handed over so far, oldest first. */
	int fds[LOCAL_PEER_FDS_MAX];
	int fds_count;
};

/* A socket that has the name beside "127.0.0.1:PORT" of a listener. */
int local_name_take(const char *address);

/* Connects to the local socket beside "127.0.0.1:PORT"; 0 or -errno. */
int local_peer_reach(struct local_peer *peer, const char *address);
/* Says hello, whether anybody listens or not. */
void local_peer_greet(struct local_peer *peer, const void *private_data,
		      size_t private_bytes);
/* Both, which must succeed. */
void local_peer_connect(struct local_peer *peer, const char *address,
			const void *private_data, size_t private_bytes);
/* The answer to the hello; its type. */
uint8_t local_peer_answer(struct local_peer *peer);
void local_peer_leave(struct local_peer *peer);

/* The next frame and its payload, at most max bytes. False: the end. */
bool local_peer_hear(struct local_peer *peer, struct soft_frame *frame,
		     void *payload, size_t max_bytes);
/* Sends a frame, with a payload if it is not NULL. */
void local_peer_send(struct local_peer *peer, const struct soft_frame *frame,
		     const void *payload);

/* Asks for the memory behind a key; how many descriptors came: 0 or 2. */
int local_peer_ask(struct local_peer *peer, uint32_t rkey);
/* READs or WRITEs a few bytes by a frame: 0, or the status of the refusal. */
uint8_t local_peer_use(struct local_peer *peer, uint8_t opcode, uint32_t rkey,
		       uint64_t addr);

/* Nobody can write to a file, whatever he tries with its descriptor. */
void expect_file_is_read_only(int fd, size_t length_bytes);
/* Nobody can change the size of a file, nor forbid others to empty it. */
void expect_file_keeps_its_size(int fd, size_t length_bytes);

/* Descriptors that this process has open. */
int open_files_count(void);

#endif
