/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * retry.h - how long a device retries before it reports a peer as dead; for all fabrics with
 * verbs.
 *
 * The values are codes of the InfiniBand specification. A queue pair gets them when it is
 * made ready, and those of the peer when it asks to connect.
 */
#ifndef RBX_RETRY_H
#define RBX_RETRY_H

/*
 * How long a device waits for an acknowledgement: 4.096 us << 15 = 134 ms, which a device may
 * stretch fourfold. With the first attempt and 6 retries, a dead peer is noticed after 0.9 to
 * 3.8 s. The next value, 7 retries, is not used: Soft-RoCE takes it for "for ever".
 */
#define RBX_ACK_TIMEOUT 15
#define RBX_RETRY_COUNT 6

/* How long a sender waits after the receiver had no posted receive: 163.84 ms; and the most
 * retries that are not for ever. So a receiver has a second to post one. */
#define RBX_RECEIVE_NOT_READY_TIMER 28
#define RBX_RECEIVE_NOT_READY_RETRY_COUNT 6

#endif
