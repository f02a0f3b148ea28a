/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint.h - a connection between two programs, and what RDMA can do over it.
 *
 * Volumes and peers (volume.h, peer.h) know what the other side is: a memory server. An
 * endpoint does not. The two programs agree on what goes over it, and on who may reach
 * which memory; the other program need not even use RDMAbox.
 *
 *	one side				the other
 *
 *	rbx_queue_create()			rbx_queue_create()
 *	rbx_endpoint_listen()
 *	rbx_endpoint_next_request() ---------	rbx_endpoint_connect()
 *	rbx_endpoint_accept()
 *	rbx_endpoint_receive()			rbx_endpoint_post()
 *	rbx_queue_poll(), something has come	rbx_queue_poll(), it is there
 *
 * What is posted is carried out by the devices. It ends as a completion, which is polled
 * out of the queue of its endpoint. A queue may have many endpoints, and one thread at a
 * time polls it. A program that serves with several threads gives each thread a queue,
 * which has a completion vector of its own as far as the device has some.
 *
 * The promises of a reliable connection:
 * - Operations on one endpoint are carried out, and complete, in the order in which they
 *   were posted. If one completes with status 0, all before it are done too. The data of
 *   a WRITE are in the memory of the other side then.
 * - Between an operation and a receive there is no order: the answer to a message may
 *   be polled before the completion of the message itself.
 * - A message (SEND, or WRITE with an immediate) takes the oldest receive of the other
 *   side, and completes it. If there is none the message waits, for a second at least and
 *   a few at most; then the connection ends. A message that is longer than the receive
 *   ends it at once.
 * - With the first failure the connection is over. All that was posted completes, each
 *   with its own status, and so do receives (with -ECANCELED if they were never tried)
 *   and what is posted later. So a program that wants to hear of the end keeps a receive
 *   posted.
 *
 * The status of a completion:
 *	0		it is done
 *	-ECANCELED	it was never tried, or cut off, as the connection was over
 *	-EACCES		the other side refuses key, bounds or rights
 *	-EFAULT		this side does
 *	-EHOSTUNREACH	the other side has gone; so says -ETIMEDOUT
 *	-ENOBUFS	the other side had no receive in time
 *	-EMSGSIZE	of a receive: the message is longer
 *	-EREMOTEIO	another failure of the other device, or its receive is too short
 *	-EIO		a failure of this device
 * If the other side has gone, one operation at most says so: the oldest that was under
 * way. Those behind it, and what is posted later, end with -ECANCELED (see also paced).
 *
 * A peer that stands still has not gone. If its process is stopped, or in a debugger, its
 * device goes on over verbs; the soft fabric is part of the process, and may wait for it
 * without bound. A program that cannot wait has a timeout of its own, and disconnects.
 * On the soft fabric the time that a message waits for a receive does not count while our
 * own process stands still, nor while what has gone out before the message is on its way.
 * It begins anew with each part of an answer to a READ that was posted before it.
 *
 * A program includes this header, which has all of these:
 *	endpoint_device.h	what the device can do, and what it tells
 *	endpoint_memory.h	memory that the other side may reach
 *	endpoint_queue.h	where completions come out
 *	endpoint_connection.h	how endpoints find each other, and part
 *	endpoint_operation.h	what goes over them
 *
 * The four rules of rdmabox.h hold for all calls. Post, receive and poll neither allocate
 * nor block. Options start with their size; fields that are zero mean the default.
 *
 * examples/ping.c and examples/one_sided.c are whole programs.
 */
#ifndef RDMABOX_ENDPOINT_H
#define RDMABOX_ENDPOINT_H

#include <rdmabox/endpoint_connection.h>
#include <rdmabox/endpoint_device.h>
#include <rdmabox/endpoint_memory.h>
#include <rdmabox/endpoint_operation.h>
#include <rdmabox/endpoint_queue.h>

#endif
