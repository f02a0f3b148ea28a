/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limits.h - all bounds of the core, with their arithmetic.
 *
 * Other bounds follow from these. A full queue returns -EAGAIN; a loop ends at its bound and
 * goes on at the next event.
 */
#ifndef RBX_LIMITS_H
#define RBX_LIMITS_H

#include "core/port.h"

/* The papers' page: the unit of checksums and of paging. */
#define RBX_PAGE_BYTES 4096u

/* A request longer than a fragment is split. 128 KiB is the paper's block. */
#define RBX_FRAGMENT_BYTES_MIN 4096u
#define RBX_FRAGMENT_BYTES_MAX (256u << 10) /* one staging run */
#define RBX_FRAGMENT_BYTES_DEFAULT (128u << 10)

/* Requests of one submit call. With the smallest fragment and the longest request the host
 * bounds fragments by its pool and not by this. */
#define RBX_SUBMIT_MAX 1024u

/* Scatter entries of a work request: 32 pages make the 128 KiB that the paper merges; every
 * device seen offers 30 or more. */
#define RBX_SGE_MAX 32u

/* The longest message that merging makes: RBX_SGE_MAX pages. */
#define RBX_MERGE_BYTES_MAX (RBX_SGE_MAX * RBX_PAGE_BYTES)

/* Work requests of one doorbell (the paper's MAX_CHAINING_SIZE). */
#define RBX_CHAIN_MAX 32u

/* Chains that a thread posts in one stint as the combiner: what arrives while it posts may
 * all be of other threads. Enough for the batches of one poll in any mode that chains; in
 * mode single, for half of them. */
#define RBX_COMBINE_MAX 16u

/* Fragments that are sorted in remote order together: at most so many that came later may
 * overtake a fragment. As many as one queue pair holds. */
#define RBX_OVERTAKE_MAX 256u

/* Urgent work requests in a row while others wait; then one of the others has its turn. Half
 * a chain, so the others keep a share of each doorbell. */
#define RBX_URGENT_RUN_MAX 16u
RBX_STATIC_ASSERT(RBX_URGENT_RUN_MAX < RBX_CHAIN_MAX,
		  "a chain is never urgent alone while others wait");

/* The widest window that a policy may choose: what 400 Gbit/s carry in a millisecond, and
 * more than any device queue can use. */
#define RBX_WINDOW_BYTES_MAX (64u << 20)

/* What a peer may take of a full window before the next one has its turn: at least one work
 * request of any size. */
#define RBX_TURN_BYTES RBX_FRAGMENT_BYTES_MAX
RBX_STATIC_ASSERT(RBX_TURN_BYTES >= RBX_MERGE_BYTES_MAX,
		  "each turn lets at least one work request through");

/* Channels visited in one round of turns: all of them twice. */
#define RBX_ROUND_VISITS_MAX (2u * RBX_CHANNELS_MAX)

/* Rounds that one poller makes in a row while other threads complete something; then it polls
 * again. */
#define RBX_ROUNDS_MAX 8u

/* Queue pairs of one peer. */
#define RBX_QUEUE_PAIRS_MAX 16u

/* Work requests posted and not completed on one queue pair. */
#define RBX_SEND_DEPTH 256u
RBX_STATIC_ASSERT(RBX_SEND_DEPTH >= 2 * RBX_CHAIN_MAX,
		  "a chain is planned while another is under way");

/* How often one fragment is sent again because another one's failure broke the connection.
 * Each such break isolates the members of a work request or ends a fragment, so a queue pair
 * full of failures takes at most twice its depth. */
#define RBX_FLUSHES_MAX (2 * RBX_SEND_DEPTH)

/* Keys that one peer takes back between two repairs of the connection, and whose fragments
 * end at once: more than one eviction of a server has under way. Each key beyond that costs
 * one more repair. */
#define RBX_ENDED_KEYS_MAX 8u

/* How often one fragment is sent again after a failure that may be its own. */
#define RBX_RETRIES_MAX 8u

/* Completions taken by one poll (the paper's MAX_POLL_WC). */
#define RBX_POLL_BATCH 32u

/* Gaps that the poll tuner samples in a turn: just enough to tell a common gap from a rare
 * one, with 16 * 16 steps to choose among them. */
#define RBX_POLL_SAMPLES 16u

/* What a sleep of a poller costs: 5 to 10 us of CPU time, and 15 to 40 us until it runs
 * again, on the machines that were measured. */
#define RBX_POLL_SLEEP_NS 50000u

/* How long a poller keeps the part of its CPU budget that it did not use. */
#define RBX_POLL_BUDGET_NS 10000000u

/* Copies of a slab. */
#define RBX_REPLICAS_MAX 3u

/* Neighbours that are read from the same replica, so that they merge: eight fragments of the
 * default size. */
#define RBX_READ_STRIPE_BYTES (1u << 20)

/* Bytes of a slab: offsets in it are 32 bits, and a server lends from 64 KiB to 1 GiB. */
#define RBX_SLAB_BYTES_MIN (64u << 10)
#define RBX_SLAB_BYTES_MAX (1u << 30)

/* Locks that the slabs of a volume share: several for each thread that submits, so that two
 * threads rarely need the same. */
#define RBX_SLAB_LOCKS 64u

/* Buckets of the cells in use, for the slabs of each lock: a few cells in each if hundreds of
 * writes are outstanding in one slab. */
#define RBX_CELL_BUCKETS 64u

/* Extents of a volume that its servers have noted as being written (extents.h): if nothing else is
 * asked for, so many bytes are copied after a crash at most, 16,384 64ths of slabs of 64 MiB, and
 * never more than RBX_EXTENTS_MAX. There is room for more, if more are being written at a time: for
 * a quarter, or so many. That takes 80 KiB, and 5 MiB at most. */
#define RBX_EXTENTS_BYTES (16ull << 30)
#define RBX_EXTENTS_PRESET 16384u
#define RBX_EXTENTS_MAX (1u << 20)
#define RBX_EXTENTS_MORE 4096u
/* Extents that were not written for one to two times as long are not noted any more. */
#define RBX_EXTENTS_QUIET_NS 5000000000ull

/* Buckets of the slabs of each lock that have lost pages: a few slabs in each after thousands
 * were lost. */
#define RBX_LOST_BUCKETS 16u

/* Pieces of requests outstanding on one volume: more than requests_max may be, and enough for
 * 1,024 reads and as many writes of a block device, of 33 pieces each. */
#define RBX_PIECES_MAX (2u * 1024u * 33u)

/* Copies of cells under way in a rebuild: enough that servers and client do several for each time
 * that they are woken, in at most 2 MiB of memory with the longest fragments. */
#define RBX_COPIES_MAX 8u

/* While requests come, copies take one in so many parts of the time (copy_pace.h); and if a server
 * waits for its replica to leave. */
#define RBX_COPY_SHARE 10u
#define RBX_COPY_HURRIED_SHARE 2u
/* But at least about so many bytes are copied in a second: 337 GiB in a day. */
#define RBX_COPY_FLOOR_BYTES (4u << 20)
/* No rate may be lower. */
#define RBX_COPY_RATE_MIN (1u << 20)
/* Requests come if one came in this time: ten in a second do not meet copies at full speed. */
#define RBX_COPY_QUIET_NS 100000000ull
/* How long what is not used of a rate is kept: longer than a thread needs to wake up. */
#define RBX_COPY_BURST_NS 10000000ull

/*
 * Slabs of a volume with something under way at a time (slab_record.h): one that is copied,
 * and 3 lists of RBX_UPKEEP_AHEAD_MAX that are next. The others have lost a replica to which
 * a request is still under way, while the next slabs are made anew. At some ms each, this is
 * what a second's silence of a server leaves. So many are kept for the upkeep thread, and 192
 * are for slabs whose writes fail by a fault of this machine.
 */
#define RBX_SLAB_RECORDS 256u
#define RBX_SLAB_RECORDS_KEPT 64u
/* So many records stay with slabs that need one only for pages in doubt (doubts.h), perhaps
 * for ever: half of what failed writes may take. */
#define RBX_SLAB_RECORDS_DOUBTED 96u

/* Pages of such a slab whose older checksum is kept, too (doubts.h): two fragments of the
 * default size. */
#define RBX_DOUBTS_MAX 64u

/* Loans that a volume could not give back because a connection was broken: more than a
 * connection leaves behind that breaks again and again. Discarded slabs keep more loans until
 * there is room, and so do slabs that were made anew while a server is silent (slab_away.h); other
 * loans go back when the volume is closed. */
#define RBX_OWED_MAX 256u

/* Older loans of a server that a new one may share something with: one by its id, one by its
 * key, and several times that many that were not given back yet. */
#define RBX_TWINS_MAX 8u

/* How long until a request that no server would fulfil is tried again. */
#define RBX_UPKEEP_RETRY_MS 1000u

/*
 * What one round of upkeep does; then the next one begins, with what is most urgent by then.
 * Servers are asked for loans for so many slabs, at some ms each, and so many loans are given
 * back, as a discard may leave thousands. So a write that waits for its first memory waits at
 * most for both together.
 */
#define RBX_UPKEEP_BORROWS_MAX 8u
#define RBX_UPKEEP_RETURNS_MAX 8u

/* Slabs whose memory is borrowed before they can be copied, so that no copy waits for memory. */
#define RBX_UPKEEP_AHEAD_MAX 2u

/* Of the slabs that no server would lend for, so many are tried again. */
#define RBX_UPKEEP_RETRIES_MAX 4u
RBX_STATIC_ASSERT(2 * RBX_UPKEEP_RETRIES_MAX <= RBX_UPKEEP_BORROWS_MAX,
		  "those whose writes wait, the others, and all in one round");

/* Servers that a volume asks at the same time, one request each: their work, some ms, runs in
 * parallel. */
#define RBX_ASKS_MAX 64u
RBX_STATIC_ASSERT(RBX_REPLICAS_MAX <= RBX_ASKS_MAX, "all replicas of a slab");
/* While a volume is opened, so many more requests wait for servers that are busy: two for each that
 * is asked. */
#define RBX_OPEN_DRAWS_MAX (2 * RBX_ASKS_MAX)

/* Peer timeouts that first writes wait for a server that is there and does not lend. A server
 * that breaks meanwhile is given up after the first of them, or is asked again. */
#define RBX_UPKEEP_LEND_TIMES 2u

/* Peer timeouts after which a program that gives a loan back stops telling the server: a
 * break is over by then, and a slow answer has come. */
#define RBX_GIVE_BACK_TIMES 2u

/* Peer timeouts for which a server that answered slowly is asked only if no other can be: its
 * cost is then a quarter of one timeout in so many. */
#define RBX_UPKEEP_AVOID_TIMES 16u

/* Servers that a volume connects to, or says BYE to, at the same time, with one thread each. */
#define RBX_CONNECTS_MAX 16u

/* Connections of a context that are repaired at the same time, with one thread each. If a
 * server does not answer, its thread is busy for a quarter of the peer timeout. */
#define RBX_RECOVERY_WORKERS 8u

/* How long a volume has been at rest before a replica moves to a server that has more memory free
 * (balance.h), and how often it looks whether one does; and half of that more, at random. */
#define RBX_BALANCE_MS 2000u
/* Slabs that are looked at for that in one round: at some 100 ns each. */
#define RBX_BALANCE_LOOKS_MAX 256u

/* Slabs looked at in one round without asking a server: those with an event, and those that a
 * dead server may have held. Less than a ms. */
#define RBX_UPKEEP_LOOKS_MAX 4096u

/* Memory servers of one volume at a time; peers of one context. A volume's tables of servers
 * take 144 KiB, and a context's of peers 32 KiB. */
#define RBX_SERVERS_MAX 1024u
#define RBX_PEERS_MAX 4096u

/* Servers of one named volume: its record names them all, and is sent as one message. */
#define RBX_MEMBERS_MAX 64u

/* Named volumes that a server keeps; and those of an owner, if there are several owners and nothing
 * else is said. */
#define RBX_KEPT_VOLUMES_MAX 1024u
#define RBX_OWNED_VOLUMES_DEFAULT 64u

/* Channels of one window: those of peers, and as many of paced endpoints. */
#define RBX_CHANNELS_MAX (2u * RBX_PEERS_MAX)

/* Slabs of a volume: 1 PiB at 64 MiB each. This also bounds the client's tables: see
 * rbx_volume_map_size(). */
#define RBX_SLABS_MAX (16u << 20)

/* Slabs that a server lends: 64 Ki are 64 TiB at 1 GiB each. Its table of them takes 2.5 MiB. */
#define RBX_LENT_SLABS_MAX 65536u

/*
 * The control connection (wire/PROTOCOL.md, "Connections"). So many unsolicited messages of a
 * server may be outstanding that the client may not have heard: evictions, and user messages.
 * And so many unanswered requests of a client are allowed.
 */
#define RBX_EVICTIONS_MAX 4u
#define RBX_UNASKED_MAX (RBX_EVICTIONS_MAX + RBX_WIRE_USER_MESSAGES_MAX)
#define RBX_REQUESTS_MAX 8u

/* Requests of our client: a call, a heartbeat, BYE, and 4 user messages. */
#define RBX_CLIENT_REQUESTS (3 + RBX_WIRE_USER_MESSAGES_MAX)

/*
 * Receives that the client has posted, one for each message that may come before it has
 * handled any: unsolicited ones, 8; an answer to each request, 7; and 4 user messages that
 * the server knows to be taken, but whose receives are not posted again yet.
 */
#define RBX_CLIENT_RECEIVES                                                    \
	(RBX_UNASKED_MAX + RBX_CLIENT_REQUESTS + RBX_WIRE_USER_MESSAGES_MAX)

/* User messages to one peer that have not ended: the receiver takes four at a time, so this
 * is eight round trips of them. */
#define RBX_USER_MESSAGES_MAX 32u

/* Clients of one server, including those that are away within their lease. Each connected
 * client costs the server 24 KiB. */
#define RBX_CLIENTS_MAX 16384u
#define RBX_CLIENTS_DEFAULT 1024u

/* Owners of one server at a time: each name in a file of secrets, which has so many lines,
 * and the clients without a name. Those whose name was removed keep a place until they have
 * left. The lender's table of them takes 64 KiB. */
#define RBX_CREDENTIALS_MAX 4096u
#define RBX_OWNERS_MAX (RBX_CREDENTIALS_MAX + 1)

/* Blocks of one write that goes to a disk behind its acknowledgement, and of one run that is
 * sent there: as long as merged pages. */
#define RBX_BEHIND_BLOCKS_MAX (RBX_MERGE_BYTES_MAX / RBX_PAGE_BYTES)

/* Reads of a disk in a row while something waits to be written: half of what such a disk has
 * under way at a time, so that its writes keep a share of it. */
#define RBX_BEHIND_READ_RUN_MAX 8u

/* How often a client is reminded of a slab that is wanted back, in case it was away when it
 * was asked. */
#define RBX_EVICT_REMIND_NS 1000000000ull

/* An eviction that is due later than that counts as having no time until it is nearer: a
 * reminder will say (attention.h). 14 s, to copy many slabs in the order of time. */
#define RBX_EVICT_NEAR_NS (13ull << 30)
RBX_STATIC_ASSERT(RBX_EVICT_REMIND_NS < RBX_EVICT_NEAR_NS / 8,
		  "it is told of often enough in time");

/* Conditional operations of an endpoint at a time, and offers: each is an entry of 56 or 64
 * bytes. The other side keeps receives for so many offers (wire/exchange.h). */
#define RBX_EXCHANGE_MAX 64u

/* How long a peer has to answer WITHDRAW before the key is ended without its answer: long
 * beside a round trip, and for each byte of the buffer what it takes at 64 MB/s. For a write that
 * is under way comes first, and its END behind it. */
#define RBX_EXCHANGE_GRACE_NS 2000000000ull
#define RBX_EXCHANGE_GRACE_BYTE_NS 16ull

#endif
