/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * params.h - the known or assumed parameters of one generation of NIC.
 *
 * A generation is a text file with one `key = value` on each line. Behind each value is a
 * comment with its source, or the word "assumed". The code of the model has no numbers of its
 * own. generations/ has the files that come with it.
 *
 *	link_mbps = 54540	# FDR 4x after 64b/66b: InfiniBand specification
 *
 * Every key is required, none may come twice. An unknown key, a value that is not a number,
 * or one out of its bounds is refused with its line.
 */
#ifndef RBX_SIM_NIC_PARAMS_H
#define RBX_SIM_NIC_PARAMS_H

#include "core/port.h"

/* Entries of a cache; processing units; misses that are filled at a time. */
#define RBX_NIC_CACHE_ENTRIES_MAX (1u << 20)
#define RBX_NIC_UNITS_MAX 64u
#define RBX_NIC_FILLS_MAX 64u

#define RBX_NIC_SECOND_NS 1000000000u

/* X(key, lowest, highest, what). Times are in ns, bandwidths in Mbit/s of one direction. */
#define RBX_NIC_PARAMS(X)                                                     \
	/* The host's side: time of the calling thread, or of its core. */    \
	X(cores, 1, 256, "cores of a node")                                   \
	X(post_wqe_ns, 0, 100000, "to write a work request to the queue")     \
	X(doorbell_ns, 0, 100000, "to ring: an uncached write of 8 bytes")    \
	X(write_combine_line_ns, 0, 100000, "to ring with 64 bytes of it")    \
	X(poll_empty_ns, 1, 100000, "a poll that finds nothing")              \
	X(poll_completion_ns, 1, 100000, "for each completion it finds")      \
	X(arm_ns, 0, 100000, "to ask for an event")                           \
	X(interrupt_ns, 0, 1000000, "of a core, to handle an interrupt")      \
	X(wake_ns, 0, 1000000, "until a woken thread may run")                \
	X(context_switch_ns, 0, 1000000, "of a core, from thread to thread")  \
	X(timeslice_ns, 1000, 100000000, "before a core's next thread")       \
	X(preempt_ns, 1000, 100000000, "by which who wakes has had less")     \
	X(copy_mbps, 100, 10000000, "of a core that copies memory")           \
	X(map_ns, 0, 1000000, "to map a buffer for DMA, in a kernel")         \
	X(map_page_ns, 0, 100000, "and for each page of it")                  \
	X(register_ns, 0, 10000000, "to register memory")                     \
	X(register_page_ns, 0, 1000000, "and for each page of it")            \
	X(deregister_ns, 0, 10000000, "to deregister memory")                 \
	X(page_bytes, 512, 1 << 30, "what one translation covers")            \
	/* PCIe. */                                                           \
	X(pcie_mbps, 100, 10000000, "raw, of a direction")                    \
	X(pcie_read_ns, 0, 100000, "round trip of a read, without its data")  \
	X(pcie_write_ns, 0, 100000, "one way of a write, without its data")   \
	X(pcie_payload_bytes, 32, 4096, "data of a packet: MPS")              \
	X(pcie_read_bytes, 64, 4096, "data asked for at once: MRRS")          \
	X(pcie_header_bytes, 0, 64, "header and framing of a packet")         \
	/* Work requests on their way into the NIC. */                        \
	X(write_combine_bytes_max, 0, 4096, "rings with the doorbell")        \
	X(wqe_header_bytes, 16, 256, "of a work request, before its list")    \
	X(wqe_sge_bytes, 8, 64, "for each entry of its list")                 \
	X(wqe_fetch_bytes, 64, 4096, "read by one DMA behind a doorbell")     \
	/* Caches: sets of `ways`, the least recently used goes. */           \
	X(wqe_cache_lines, 1, RBX_NIC_CACHE_ENTRIES_MAX, "of 64 bytes")       \
	X(wqe_cache_ways, 1, 64, "")                                          \
	X(qp_cache_entries, 1, RBX_NIC_CACHE_ENTRIES_MAX, "queue pairs")      \
	X(qp_cache_ways, 1, 64, "")                                           \
	X(qp_context_bytes, 1, 4096, "read on a miss")                        \
	X(translation_cache_lines, 1, RBX_NIC_CACHE_ENTRIES_MAX, "")          \
	X(translation_cache_ways, 1, 64, "")                                  \
	X(translation_line_pages, 1, 64, "translations of a line")            \
	X(fills_at_once, 1, RBX_NIC_FILLS_MAX, "misses over PCIe at once")    \
	X(fill_ns, 0, 100000, "of a miss, besides its read")                  \
	/* Processing units, as many to send as to receive. */                \
	X(units, 1, RBX_NIC_UNITS_MAX, "a queue pair has one of each")        \
	X(send_wqe_ns, 1, 100000, "a unit, for a work request")               \
	X(send_packet_ns, 0, 100000, "and for each packet of it")             \
	X(send_unit_mbps, 100, 10000000, "and no more than this of data")     \
	X(receive_packet_ns, 1, 100000, "a unit, for a packet that comes")    \
	X(receive_read_ns, 1, 100000, "for a read request that comes")        \
	X(receive_ack_ns, 1, 100000, "for an acknowledgement")                \
	/* The wire. */                                                       \
	X(link_mbps, 100, 10000000, "of a direction")                         \
	X(link_ns, 1, 100000000, "one way, wire and NICs, without the data")  \
	X(mtu_bytes, 256, 65536, "data of a packet")                          \
	X(packet_header_bytes, 0, 256, "on the wire")                         \
	X(ack_bytes, 1, 256, "an acknowledgement, a read request")            \
	/* Reliable connections. */                                           \
	X(reads_outstanding_max, 1, 256, "of a queue pair, at the responder") \
	X(retry_timeout_ns, 1000, 4000000000u, "without an answer")           \
	X(retry_count, 0, 7, "before a queue pair gives up")                  \
	X(rnr_timer_ns, 1000, 1000000000u, "until a send is tried again")     \
	X(rnr_retry_count, 0, 1000000, "")                                    \
	/* Events. */                                                         \
	X(moderation_ns, 0, 10000000, "an interrupt waits for more")          \
	X(moderation_count, 1, 65536, "completions that end the wait")        \
	/* What the driver says it can do. */                                 \
	X(qp_max, 1, 1 << 20, "")                                             \
	X(sge_max, 1, 256, "")                                                \
	X(inline_bytes_max, 0, 4096, "")                                      \
	X(message_bytes_max, 4096, 1u << 31, "")                              \
	X(send_wr_max, 1, 65536, "of a queue pair")                           \
	X(recv_wr_max, 1, 65536, "")

struct rbx_nic_params {
	char name[64]; /* `name = ConnectX-3` */
#define X(key, low, high, what) uint32_t key;
	RBX_NIC_PARAMS(X)
#undef X
};

/*
 * Reads a file. Returns 0, or -errno with one line in error (RBX_NIC_ERROR_MAX bytes): which
 * line, what is wrong with it, and what would be right.
 */
#define RBX_NIC_ERROR_MAX 2048
int rbx_nic_params_read(const char *path, struct rbx_nic_params *params,
			char *error);

/* The same for a text; `name` is used for the file in errors. */
int rbx_nic_params_parse(const char *text, const char *name,
			 struct rbx_nic_params *params, char *error);

#endif
