/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server_stats.h - the numbers and the clients of a server of this process.
 */
#ifndef RDMABOX_SERVER_STATS_H
#define RDMABOX_SERVER_STATS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_server;

#define RBX_SERVER_STATS(X)                                                   \
	X(memory_bytes, "bytes to lend in all")                               \
	X(lent_bytes, "bytes lent now")                                       \
	X(slab_bytes, "bytes of a slab")                                      \
	X(slabs_lent, "slabs lent now")                                       \
	X(clients, "clients connected now")                                   \
	X(sessions, "clients ever admitted")                                  \
	X(slabs_mapped, "slabs ever lent")                                    \
	X(slabs_unmapped, "slabs given back by clients")                      \
	X(slabs_revoked, "slabs taken back from clients")                     \
	X(leases_expired, "clients that were not heard of for a term")        \
	X(refused_full, "requests for a slab refused: no memory left")        \
	X(refused_quota, "requests for a slab refused: quota reached")        \
	X(refused_auth, "connections refused: wrong secret")                  \
	X(refused_malformed, "messages refused: malformed")                   \
	X(heartbeats, "heartbeats answered")                                  \
	X(uptime_s, "seconds since the start")                                \
	X(messages_received, "messages that clients' programs sent")          \
	X(messages_sent, "messages sent to clients' programs")                \
	X(reads, "work requests of clients that read, as far as seen")        \
	X(read_bytes, "bytes that clients read, as far as seen")              \
	X(writes, "work requests of clients that wrote, as far as seen")      \
	X(written_bytes, "bytes that clients wrote, as far as seen")          \
	X(draining, "1 if nothing more is lent, since it drains")

/*
 * Of reads, read_bytes, writes and written_bytes if the device does not tell. A NIC
 * carries out what clients ask and its server never hears of it. The software device
 * counts what comes over TCP; it does not see what a client of the same host does
 * through a mapping.
 */
#define RBX_SERVER_NOT_SEEN UINT64_MAX

struct rbx_server_stats {
	size_t size_bytes; /* of what was filled in; the rest is zero */
#define RBX_SERVER_STATS_FIELD(name, what) uint64_t name;
	RBX_SERVER_STATS(RBX_SERVER_STATS_FIELD)
#undef RBX_SERVER_STATS_FIELD
};

/**
 * rbx_server_stats_get_sized() - fills in numbers of a server of this process, of that size.
 * @size_bytes: of the struct, as the program knows it
 *
 * What this version of the library does not know is zero.
 *
 * Context: any thread, callbacks too; blocks until the server has
 *	answered what has come.
 */
void rbx_server_stats_get_sized(struct rbx_server *server,
				struct rbx_server_stats *stats, size_t size_bytes);

/**
 * rbx_server_stats_get() - tells the numbers of a server of this process.
 *
 * It fills in this version of the struct, as rbx_server_stats_get_sized().
 *
 * Context: any thread, callbacks too; blocks until the server has
 *	answered what has come.
 */
static inline void rbx_server_stats_get(struct rbx_server *server,
					struct rbx_server_stats *stats)
{
	rbx_server_stats_get_sized(server, stats, sizeof(*stats));
}

/* ---- Looking closer, at a server of this process ---------------------------*/

/* One reason to refuse, and how often it was given. */
struct rbx_server_refusal {
	const char *reason; /* "QUOTA"; constant text */
	const char *sentence; /* "the quota of this owner is reached" */
	uint64_t count; /* since the start */
};

/**
 * rbx_server_refusals_get() - tells why messages and connections were refused.
 * @refusals: room for @refusals_max of them; NULL if that is 0
 *
 * Returns how many reasons there are, which is the same for all servers.
 * Context: any thread, callbacks too; blocks until the server has
 *	answered what has come.
 */
size_t rbx_server_refusals_get(struct rbx_server *server,
			       struct rbx_server_refusal *refusals,
			       size_t refusals_max);

/* The upper bounds of rbx_server_answers.within, in nanoseconds. */
#define RBX_SERVER_ANSWER_BOUNDS(X)                                           \
	X(10000) X(100000) X(1000000) X(10000000) X(100000000) X(1000000000)
#define RBX_SERVER_ANSWER_BOUND_ONE(bound_ns) +1
#define RBX_SERVER_ANSWER_BOUNDS_COUNT                                        \
	(0 RBX_SERVER_ANSWER_BOUNDS(RBX_SERVER_ANSWER_BOUND_ONE))

/* How long answers to control messages took, from the moment the server found the
 * message; those to requests for a slab include making its memory. */
struct rbx_server_answers {
	size_t size_bytes; /* of what was filled in; the rest is zero */
	uint64_t count; /* of answers since the start */
	uint64_t sum_ns; /* of the times of all */
	uint64_t max_ns; /* the longest */
	uint64_t within[RBX_SERVER_ANSWER_BOUNDS_COUNT]; /* of count, at most a bound */
};

/**
 * rbx_server_answers_get_sized() - fills in how long answers took, of that size.
 * @size_bytes: of the struct, as the program knows it
 *
 * What this version of the library does not know is zero.
 *
 * Context: any thread, callbacks too; blocks until the server has
 *	answered what has come.
 */
void rbx_server_answers_get_sized(struct rbx_server *server,
				  struct rbx_server_answers *answers,
				  size_t size_bytes);

/**
 * rbx_server_answers_get() - tells how long answers of a server of this process took.
 *
 * It fills in this version of the struct, as rbx_server_answers_get_sized().
 *
 * Context: any thread, callbacks too; blocks until the server has
 *	answered what has come.
 */
static inline void rbx_server_answers_get(struct rbx_server *server,
					  struct rbx_server_answers *answers)
{
	rbx_server_answers_get_sized(server, answers, sizeof(*answers));
}

/* A client that is connected, or away within its lease. */
struct rbx_server_client {
	char address[128]; /* where it was admitted from, only characters that print */
	uint64_t slabs_lent; /* to it, now */
	uint64_t age_ms; /* since it was admitted */
	uint64_t connected; /* 1, or 0 if it is away */
	char credential[32]; /* the name of its credential; "": it has none */
};

/**
 * rbx_server_clients_get() - tells the clients of a server of this process.
 * @clients: room for @clients_max of them; NULL if that is 0
 *
 * Returns how many clients there are, which may be more than were stored.
 * Context: any thread, callbacks too; blocks until the server has
 *	answered what has come.
 */
size_t rbx_server_clients_get(struct rbx_server *server,
			      struct rbx_server_client *clients,
			      size_t clients_max);

#ifdef __cplusplus
}
#endif

#endif
