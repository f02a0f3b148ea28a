/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scene_host.h - the host of a session that is played: the fabric makes connections when
 * it is told to, and keeps what is sent; the clock is looked at by whoever directs.
 */
#ifndef RBX_TESTS_SCENE_HOST_H
#define RBX_TESTS_SCENE_HOST_H

#include "client/session_state.h"

#define MS 1000000ull
#define LINES_MAX 8u
#define SENT_MAX 32u

/* A message that the server has not answered. */
struct scene_sent {
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];
	size_t length_bytes;
};

/* A connection, or an attempt at one. */
struct rbx_connection {
	struct rbx_session *session;
	uint32_t generation;
	bool is_made;
	bool is_gone; /* freed, or never made */
	uint32_t lost_count; /* how often the owner was told */
	uint32_t slots_busy;
	uint8_t buffers[RBX_BORROWER_SLOTS][RBX_WIRE_MESSAGE_BYTES_MAX];
	struct scene_sent sent[SENT_MAX];
	uint32_t sent_count;
	bool is_heard; /* the server has had a message */
};

struct rbx_clock {
	bool is_soon;
	bool is_there;
};

extern struct scene_host {
	struct rbx_monitor monitor; /* for those who connect */
	uint32_t connects_count; /* that may be made */
	bool connects_always;
	struct rbx_connection lines[LINES_MAX];
	uint32_t lines_count;
	struct rbx_clock clock;
} scene_host;

/* NULL: there was none. */
struct rbx_connection *scene_host_newest(void);
/* Whether the fabric connects once more, by then. */
bool scene_host_connects(uint64_t until_ns);

#endif
