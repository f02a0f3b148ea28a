/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * trace.h - the tracepoints of rdmabox.ko, for perf, bpftrace and tracefs.
 *
 *	cd /sys/kernel/tracing && echo 1 >events/rdmabox/enable && cat trace_pipe
 *
 * A request, from submit to end:
 *	rdmabox_submit		an I/O was taken: which bytes, in how many pieces
 *	rdmabox_window_wait	the combiner of a peer waits for credit or its turn
 *	rdmabox_post		one doorbell: a chain of work requests, their bytes
 *	rdmabox_complete	one completion, and with it all that was posted
 *				before it on its queue pair
 * and what happens to servers and slabs:
 *	rdmabox_peer_state	a connection is up, broken, drained, or given up
 *	rdmabox_slab_task	the upkeep thread works on a slab
 *	rdmabox_evict		a server wants a slab back
 *
 * A tracepoint that is off is one instruction that does nothing.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rdmabox

#if !defined(RBX_KERNEL_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RBX_KERNEL_TRACE_H

#include <linux/tracepoint.h>

#include "core/slab.h"
#include "kernel/api.h"
#include "kernel/lib/peer/peer.h"

#define RBX_TRACE_SERVER_BYTES RBX_ADDRESS_TEXT_BYTES

#define rbx_trace_op(op) \
	__print_symbolic(op, { RBX_IO_READ, "read" }, { RBX_IO_WRITE, "write" })

#define rbx_trace_phase(phase)                                     \
	__print_symbolic(phase, { RBX_PEER_OPENING, "opening" },   \
			 { RBX_PEER_UP, "up" },                    \
			 { RBX_PEER_DRAINING, "draining" },        \
			 { RBX_PEER_RESUMING, "resuming" },        \
			 { RBX_PEER_DOWN, "down" })

#define rbx_trace_task(task)                                   \
	__print_symbolic(task, { RBX_TASK_NONE, "none" },      \
			 { RBX_TASK_GIVE_BACK, "give_back" },  \
			 { RBX_TASK_LEND, "lend" },            \
			 { RBX_TASK_FREE_PAGES, "free_pages" }, \
			 { RBX_TASK_COPY, "copy" },            \
			 { RBX_TASK_LABEL, "label" },          \
			 { RBX_TASK_UNLABEL, "unlabel" },      \
			 { RBX_TASK_BORROW, "borrow" })

/* perf and trace_pipe know only the numbers of enums, so these name them. */
TRACE_DEFINE_ENUM(RBX_IO_READ);
TRACE_DEFINE_ENUM(RBX_IO_WRITE);
TRACE_DEFINE_ENUM(RBX_PEER_OPENING);
TRACE_DEFINE_ENUM(RBX_PEER_UP);
TRACE_DEFINE_ENUM(RBX_PEER_DRAINING);
TRACE_DEFINE_ENUM(RBX_PEER_RESUMING);
TRACE_DEFINE_ENUM(RBX_PEER_DOWN);
TRACE_DEFINE_ENUM(RBX_TASK_NONE);
TRACE_DEFINE_ENUM(RBX_TASK_GIVE_BACK);
TRACE_DEFINE_ENUM(RBX_TASK_LEND);
TRACE_DEFINE_ENUM(RBX_TASK_FREE_PAGES);
TRACE_DEFINE_ENUM(RBX_TASK_COPY);
TRACE_DEFINE_ENUM(RBX_TASK_LABEL);
TRACE_DEFINE_ENUM(RBX_TASK_UNLABEL);
TRACE_DEFINE_ENUM(RBX_TASK_BORROW);

TRACE_EVENT(rdmabox_submit,
	TP_PROTO(const struct rbx_io *io, u64 length_bytes, u32 pieces),
	TP_ARGS(io, length_bytes, pieces),
	TP_STRUCT__entry(
		__field(const void *, io)
		__field(u64, offset_bytes)
		__field(u64, length_bytes)
		__field(u32, pieces)
		__field(u8, op)
	),
	TP_fast_assign(
		__entry->io = io;
		__entry->offset_bytes = io->offset_bytes;
		__entry->length_bytes = length_bytes;
		__entry->pieces = pieces;
		__entry->op = io->op;
	),
	TP_printk("io=%p op=%s offset_bytes=%llu length_bytes=%llu pieces=%u",
		  __entry->io, rbx_trace_op(__entry->op),
		  __entry->offset_bytes, __entry->length_bytes,
		  __entry->pieces)
);

TRACE_EVENT(rdmabox_window_wait,
	TP_PROTO(const struct rbx_peer *peer, u64 inflight_bytes),
	TP_ARGS(peer, inflight_bytes),
	TP_STRUCT__entry(
		__array(char, server, RBX_TRACE_SERVER_BYTES)
		__field(u64, inflight_bytes)
	),
	TP_fast_assign(
		strscpy(__entry->server, rbx_session_name(peer->session),
			RBX_TRACE_SERVER_BYTES);
		__entry->inflight_bytes = inflight_bytes;
	),
	TP_printk("server=%s inflight_bytes=%llu", __entry->server,
		  __entry->inflight_bytes)
);

TRACE_EVENT(rdmabox_peer_state,
	TP_PROTO(const struct rbx_peer *peer, u32 phase),
	TP_ARGS(peer, phase),
	TP_STRUCT__entry(
		__array(char, server, RBX_TRACE_SERVER_BYTES)
		__field(u32, phase)
	),
	TP_fast_assign(
		strscpy(__entry->server, rbx_session_name(peer->session),
			RBX_TRACE_SERVER_BYTES);
		__entry->phase = phase;
	),
	TP_printk("server=%s phase=%s", __entry->server,
		  rbx_trace_phase(__entry->phase))
);

TRACE_EVENT(rdmabox_evict,
	TP_PROTO(const struct rbx_peer *peer, u64 slab_id, u64 epoch),
	TP_ARGS(peer, slab_id, epoch),
	TP_STRUCT__entry(
		__array(char, server, RBX_TRACE_SERVER_BYTES)
		__field(u64, slab_id)
		__field(u64, epoch)
	),
	TP_fast_assign(
		strscpy(__entry->server, rbx_session_name(peer->session),
			RBX_TRACE_SERVER_BYTES);
		__entry->slab_id = slab_id;
		__entry->epoch = epoch;
	),
	TP_printk("server=%s slab_id=%llu epoch=%llu", __entry->server,
		  __entry->slab_id, __entry->epoch)
);

TRACE_EVENT(rdmabox_post,
	TP_PROTO(const struct rbx_peer *peer, u32 queue_pair, u32 number,
		 u32 work_requests, u64 length_bytes),
	TP_ARGS(peer, queue_pair, number, work_requests, length_bytes),
	TP_STRUCT__entry(
		__array(char, server, RBX_TRACE_SERVER_BYTES)
		__field(u32, queue_pair)
		__field(u32, number)
		__field(u32, work_requests)
		__field(u64, length_bytes)
	),
	TP_fast_assign(
		strscpy(__entry->server, rbx_session_name(peer->session),
			RBX_TRACE_SERVER_BYTES);
		__entry->queue_pair = queue_pair;
		__entry->number = number;
		__entry->work_requests = work_requests;
		__entry->length_bytes = length_bytes;
	),
	TP_printk("server=%s queue_pair=%u number=%u work_requests=%u length_bytes=%llu",
		  __entry->server, __entry->queue_pair, __entry->number,
		  __entry->work_requests, __entry->length_bytes)
);

TRACE_EVENT(rdmabox_complete,
	TP_PROTO(const struct rbx_peer *peer, u32 queue_pair, u32 number,
		 int status),
	TP_ARGS(peer, queue_pair, number, status),
	TP_STRUCT__entry(
		__array(char, server, RBX_TRACE_SERVER_BYTES)
		__field(u32, queue_pair)
		__field(u32, number)
		__field(int, status)
	),
	TP_fast_assign(
		strscpy(__entry->server, rbx_session_name(peer->session),
			RBX_TRACE_SERVER_BYTES);
		__entry->queue_pair = queue_pair;
		__entry->number = number;
		__entry->status = status;
	),
	TP_printk("server=%s queue_pair=%u number=%u status=%d",
		  __entry->server, __entry->queue_pair, __entry->number,
		  __entry->status)
);

TRACE_EVENT(rdmabox_slab_task,
	TP_PROTO(u32 slab, u32 task),
	TP_ARGS(slab, task),
	TP_STRUCT__entry(
		__field(u32, slab)
		__field(u32, task)
	),
	TP_fast_assign(
		__entry->slab = slab;
		__entry->task = task;
	),
	TP_printk("slab=%u task=%s", __entry->slab,
		  rbx_trace_task(__entry->task))
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH kernel/lib
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
