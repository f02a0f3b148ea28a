/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange.h - two programs exchange buffers by tag: conditional RDMA writes and reads.
 *
 * To write into a buffer of another program one needs its key, and there is a key only after
 * the buffer was registered. So the usual sequence has both sides wait for each other:
 *
 *	writer				owner of the buffer
 *	register
 *	"I have data for you" ------->	poll; register
 *	poll			<-----	"address, length, key"
 *	write		======>
 *	"it is there"	------->	poll; deregister
 *
 * The fast RDMA read and write process (FRRWP; section 6 of the MRRC/FRRWP paper) has both
 * sides register at the same time, and the engine wait for the key instead of the program:
 *
 *	writer				owner of the buffer
 *	rbx_conditional_write(tag)	rbx_offer(tag)
 *	  registers			  registers
 *	  holds the write  <----------	  OFFER tag, address, length, key
 *	  key and tag match
 *	  writes	======>
 *	  END		------->	  ends the key
 *	completion			completion
 *
 * rbx_conditional_write() is the paper's CRW, and rbx_offer() its STCRW. It does not matter
 * which of the two is called first. The two programs agree on the tag beforehand, in whatever
 * way: the number of a request will do, or the paper's synchronization message. Each tag is
 * used by one operation and one offer at a time, and may be used again when both have ended.
 *
 * rbx_conditional_read() does the same the other way round: the owner offers a buffer to be
 * read, and its completion says that it was.
 *
 * Who does the work. The endpoint needs the option `exchanges` at both ends. Its messages are
 * the engine's then: no receives are posted, and no SEND and no immediate. A program that has
 * messages too sends them over another endpoint of the same queue. Plain WRITEs, READs and
 * atomics go on as ever. The thread that is in rbx_queue_poll() or rbx_queue_run() is the
 * engine: it matches and posts before the program has seen anything. So a program keeps a
 * thread there. A program with a loop of its own polls at least as often as it wants
 * deadlines to be looked at, and whenever rbx_queue_fd() is readable.
 *
 * Operations go out as all others of the endpoint do. If it is `paced` they are merged with
 * neighbours, take turns and share the window.
 *
 * What it gains. bench/exchange compares it with programs that wait for the key themselves. It is
 * not quicker there yet: on soft:tcp the second connection costs more than the engine saves, and
 * the lab has one CPU, on which nothing overlaps. It is for NICs, whose registrations take long,
 * and for programs that have something else to do than to wait for keys.
 *
 * The end of access. An offer completes only after its key has ended, for whatever reason it
 * does. Then no peer, however late or hostile, reaches the buffer:
 * - Each offer has a key of its own, which nobody else is told.
 * - verbs: the region is deregistered. The NIC refuses the key from then on, and what was
 *   under way has ended before ibv_dereg_mr() returns.
 * - soft: the key is taken out of the device's table, and the call waits for copies that run.
 *   Such a region is never mapped by a peer.
 * That system call is made by the thread that polls.
 *
 * How an operation ends, in its completion (kind RBX_COMPLETION_POSTED):
 *	0		the data were written or read, length_bytes of them
 *	-ETIMEDOUT	no offer has come in time
 *	-EMSGSIZE	the offer is shorter than the operation; the offer ends so too
 *	-EPROTOTYPE	one side writes and the other offers to be read, or the reverse; the
 *			offer ends so too
 *	-EACCES		the other side refuses the key that it has sent; the connection is over
 *	-EPROTO		the other side has broken the protocol; the connection was ended
 *	-EHOSTUNREACH	the other side has gone
 *	-ECANCELED	the connection was ended by us, or by another failure
 * and an offer (kind RBX_COMPLETION_OFFERED), of these and:
 *	0		length_bytes of the buffer were written or read
 *	-ETIMEDOUT	nobody has used it in time
 *	-EEXIST		the other side still holds an offer of this tag
 *	-ENOBUFS	the other side holds too many offers that nobody has asked for: as many
 *			as its option `exchanges` says
 * With an error the contents of the buffer are undefined: a peer may have written some of it.
 *
 * Deadlines. An operation that has its key is the device's, and ends as any operation of the
 * endpoint does. When the deadline of an offer passes, the other side is asked whether it
 * uses it. If it says nothing for 2 s, and 16 ns more for each byte, the key is ended all the
 * same; a write that was on its way then ends the connection.
 */
#ifndef RDMABOX_EXCHANGE_H
#define RDMABOX_EXCHANGE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_endpoint; /* of endpoint.h, with the option `exchanges` */
struct rbx_segment; /* of request.h */

/* What the other side may do with a buffer that is offered. */
enum rbx_offer_access {
	RBX_OFFER_TO_WRITE, /* by rbx_conditional_write() */
	RBX_OFFER_TO_READ, /* by rbx_conditional_read() */
};

/**
 * rbx_conditional_write() - writes a buffer when the other side has offered one of this tag.
 * @tag: of the offer
 * @buffer: copied; its memory is borrowed until the operation completes. If it names no
 *	region and the device needs one, it is registered for this operation
 * @timeout_ms: how long it waits for the offer; 0: as long as the connection lasts
 * @user: of its completion; after an error of the call there is none
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, the buffer is empty, or the endpoint has no exchanges
 *	-EFAULT: the buffer is not in its region
 *	-EAGAIN: as many operations as the option `exchanges` says are outstanding: poll first
 *	-EEXIST: an operation with this tag is outstanding
 *	-EMSGSIZE: the offer is here, and shorter; it ends too
 *	-EPROTOTYPE: the offer is here, and is to be read; it ends too
 *	-ENOMEM: the memory cannot be pinned
 *	-EHOSTUNREACH, -ECANCELED, -EPROTO: the connection is over
 * Context: any thread, callbacks too; may block for a system call, to register.
 */
int rbx_conditional_write(struct rbx_endpoint *endpoint, uint64_t tag,
			  const struct rbx_segment *buffer, uint32_t timeout_ms, void *user);

/**
 * rbx_conditional_read() - reads into a buffer when the other side has offered one of this tag.
 * @tag: of the offer
 * @buffer: as of rbx_conditional_write(); it is filled
 * @timeout_ms: how long it waits for the offer; 0: as long as the connection lasts
 * @user: of its completion
 *
 * Returns 0, or:
 *	-EPROTOTYPE: the offer is here, and is to be written; it ends too
 *	-E...: as rbx_conditional_write()
 * Context: any thread, callbacks too; may block for a system call, to register.
 */
int rbx_conditional_read(struct rbx_endpoint *endpoint, uint64_t tag,
			 const struct rbx_segment *buffer, uint32_t timeout_ms, void *user);

/**
 * rbx_offer() - offers a buffer to the operation of the other side with this tag.
 * @addr: borrowed until the offer completes
 * @length_bytes: of the buffer, at least 1; the operation may be shorter
 * @timeout_ms: how long it waits to be used; 0: as long as the connection lasts
 * @user: of its completion
 *
 * The buffer is registered for this offer alone, and can be reached by its key until the
 * completion is polled. After an error of the call there is no completion.
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, the buffer is empty, there is no such access, or the
 *		endpoint has no exchanges
 *	-EAGAIN: as many offers as the option `exchanges` says are outstanding: poll first
 *	-EEXIST: an offer with this tag is outstanding
 *	-ENOMEM: the memory cannot be pinned
 *	-ENOSPC: all keys of the soft device are in use
 *	-EHOSTUNREACH, -ECANCELED, -EPROTO: the connection is over
 * Context: any thread, callbacks too; blocks for a system call, to register.
 */
int rbx_offer(struct rbx_endpoint *endpoint, uint64_t tag, void *addr, uint32_t length_bytes,
	      enum rbx_offer_access access, uint32_t timeout_ms, void *user);

#ifdef __cplusplus
}
#endif

#endif
