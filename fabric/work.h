/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * work.h - work requests, receives and completions: the input and output of a queue pair.
 *
 * fabric.h says in which order they are carried out, and what each status means.
 */
#ifndef RBX_FABRIC_WORK_H
#define RBX_FABRIC_WORK_H

#include <stdint.h>

#include "core/sge.h"

struct rbx_device_window;
struct rbx_qp;

/*
 * An atomic changes the 8 bytes at remote_addr, a number in the byte order of its host, and
 * returns their former value. Its scatter list is one entry of 8 bytes. remote_addr must be a
 * multiple of 8, else it fails like a bad key (some devices refuse the post, or return
 * -EREMOTEIO). It is atomic to other atomics of the same device, but not to writes and not to
 * the CPUs of the target.
 */
enum rbx_opcode {
	RBX_OP_WRITE,
	RBX_OP_READ,
	RBX_OP_SEND,
	RBX_OP_OPEN_WINDOW, /* of this qp; no list; only the flags SIGNALED and FENCE */
	RBX_OP_COMPARE_SWAP, /* if they equal compare_add they become swap */
	RBX_OP_FETCH_ADD, /* compare_add is added to them, modulo 2^64 */
	/* In completions only. */
	RBX_OP_RECV, /* a SEND was placed in the receive */
	/* a WRITE with immediate has come; the receive is used up, its memory untouched */
	RBX_OP_RECV_WRITE,
};

enum rbx_wr_flags {
	RBX_WR_SIGNALED = 1, /* completes visibly even without error */
	RBX_WR_INLINE = 2, /* the data is copied during the post */
	RBX_WR_FENCE = 4, /* starts after all earlier reads and atomics are done */
	RBX_WR_IMMEDIATE = 8, /* WRITE, SEND: sends `immediate`, and takes a receive of the peer */
	/* SEND, without immediate: the peer's key invalidate_rkey ends before its
	 * receive completes. It is always fenced: earlier reads may need the key. */
	RBX_WR_INVALIDATE = 16,
};

/*
 * A work request. The fabric copies it and its scatter list during the post;
 * it borrows the memory that the list points to until completion.
 */
struct rbx_wr {
	struct rbx_wr *next; /* a chain: the whole list is one doorbell */
	uint64_t wr_id;
	const struct rbx_sge *sges;
	uint32_t sge_count;
	uint8_t opcode; /* enum rbx_opcode, except those of completions */
	uint8_t flags; /* enum rbx_wr_flags */
	uint32_t rkey; /* all but SEND and OPEN_WINDOW */
	union {
		/* a number in our byte order, which arrives as the same number at the peer */
		uint32_t immediate;
		uint32_t invalidate_rkey;
	};
	uint64_t remote_addr; /* for the same as rkey */
	uint64_t compare_add; /* atomics */
	union {
		uint64_t swap; /* RBX_OP_COMPARE_SWAP */
		struct rbx_device_window *window; /* RBX_OP_OPEN_WINDOW */
	};
};

/* A receive: the data of a message fills the entries one after another. The list is copied
 * during the post. Entries of no bytes come last, or are refused with -EINVAL. */
struct rbx_recv_wr {
	struct rbx_recv_wr *next;
	uint64_t wr_id;
	const struct rbx_sge *sges;
	uint32_t sge_count; /* 0: for messages of no bytes */
};

/* What came with a message, in the completion of its receive. */
enum rbx_wc_flags {
	RBX_WC_IMMEDIATE = 1,
	RBX_WC_INVALIDATED = 2, /* the key was ended */
};

struct rbx_wc {
	uint64_t wr_id;
	struct rbx_qp *qp;
	int32_t status; /* 0 or -errno, see fabric.h */
	/* The following are valid only if status is 0. */
	uint8_t opcode;
	uint8_t flags; /* of a receive: enum rbx_wc_flags */
	uint32_t length_bytes; /* of a receive: of the message */
	union {
		uint32_t immediate; /* in our byte order */
		uint32_t invalidated_rkey;
	};
};

#endif
