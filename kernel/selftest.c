/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * selftest.c - tests the core in this kernel.
 *
 * The core is tested in user space and in the simulator. What can still be wrong here is
 * what the kernel adds: the port's checksums, its HMAC, and above all its atomics. So
 * first known answers are compared. Then threads on all processors submit fragments to
 * one channel. Its window is so small that combiners park all the time, while another
 * thread completes what is posted. Each fragment must end once, and the window must be
 * empty at the end. A lost wake-up shows as a hang.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/slab.h>

#include "core/harvest.h"
#include "kernel/selftest.h"
#include "wire/proof.h"

#define FRAGMENTS_PER_THREAD 20000u
#define FRAGMENTS_AT_ONCE 16u
#define THREADS_MAX 4u

/* ---- Known answers -------------------------------------------------------*/

static int check(bool good, const char *what)
{
	if (!good)
		pr_err("rdmabox: selftest: %s is wrong\n", what);
	return good ? 0 : -EIO;
}

static int crc_test(void)
{
	/* RFC 3720, B.4: 32 bytes of ones; and the same in two halves. */
	uint8_t ones[32];
	uint32_t crc;

	memset(ones, 0xff, sizeof(ones));
	crc = rbx_port_crc32c(rbx_port_crc32c(0, ones, 16), ones, 16);
	return check(rbx_port_crc32c(0, ones, 32) == 0x62a8ab43 &&
			     crc == 0x62a8ab43,
		     "CRC32C");
}

static int hmac_test(void)
{
	/* RFC 4231, 4.3: the first bytes. */
	static const uint8_t known[] = { 0x5b, 0xdc, 0xc1, 0x46,
					 0xbf, 0x60, 0x75, 0x4e };
	static const char text[] = "what do ya want for nothing?";
	uint8_t mac[RBX_HMAC_BYTES];

	rbx_port_hmac_sha256((const uint8_t *)"Jefe", 4, (const uint8_t *)text,
			     sizeof(text) - 1, mac);
	return check(!memcmp(mac, known, sizeof(known)), "HMAC-SHA256");
}

static int wire_test(void)
{
	struct rbx_wire_message *said, *heard;
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];
	size_t length_bytes;
	int err = -ENOMEM;

	said = kzalloc(2 * sizeof(*said), GFP_KERNEL);
	if (!said)
		return err;
	heard = said + 1;
	said->type = RBX_WIRE_SLAB_LOAN;
	said->request_id = 7;
	said->epoch = 0x0123456789abcdefull;
	said->loan = (struct rbx_wire_loan){ 1, 0xffff800000000000ull,
					     1ull << 30, 2, 3 };
	length_bytes = rbx_wire_encode(said, bytes);
	err = rbx_wire_decode(bytes, length_bytes, heard);
	err = check(!err && heard->epoch == said->epoch &&
			    !memcmp(&heard->loan, &said->loan,
				    sizeof(said->loan)),
		    "a message");
	bytes[length_bytes - 1] = 1; /* reserved */
	if (!err)
		err = check(rbx_wire_decode(bytes, length_bytes, heard) ==
				    -EBADMSG,
			    "the check of a message");
	kfree(said);
	return err;
}

static int memory_test(void)
{
	char *memory = kzalloc(RBX_SELFTEST_BYTES, GFP_KERNEL);
	int err;

	if (!memory)
		return -ENOMEM;
	err = check(rbx_selftest_checksums(memory), "a checksum of a page");
	/* Without this option the device's list cannot be cut at other places than the
	 * CPU's. */
	if (!err && IS_ENABLED(CONFIG_NEED_SG_DMA_LENGTH))
		err = check(rbx_selftest_stretches(memory),
			    "the walk along an I/O's memory");
	kfree(memory);
	return err;
}

/* ---- The channel under threads --------------------------------------------*/

struct arena {
	struct rbx_planner planner;
	struct rbx_window window;
	struct rbx_staging staging;
	struct rbx_channel channel;
	uint64_t ended_count; /* atomic */
	uint64_t junk_count; /* atomic: ended with an error, or of another test */
	uint32_t started_count; /* atomic */
	uint32_t thread_count;
};

struct racer {
	struct arena *arena;
	struct task_struct *thread;
	struct completion stopped;
	uint32_t left; /* atomic: fragments of the round that have not ended */
	struct rbx_fragment fragments[FRAGMENTS_AT_ONCE];
};

/* Marks a fragment that is in flight. */
#define UNDER_WAY 1

static struct racer *racer_of(const struct rbx_fragment *fragment)
{
	return (struct racer *)(uintptr_t)fragment->local_addr;
}

static struct rbx_fragment *ended(struct rbx_fragment *list)
{
	while (list) {
		struct rbx_fragment *next = rbx_fragment_next(list);
		struct racer *racer = racer_of(list);

		if (list->status || list->lkey != UNDER_WAY)
			RBX_ADD_RELAXED(&racer->arena->junk_count, 1);
		list->lkey = 0;
		RBX_ADD_RELAXED(&racer->arena->ended_count, 1);
		/* The last access to it: the racer may reuse the fragment. */
		RBX_FETCH_ADD(&racer->left, (uint32_t)-1);
		list = next;
	}
	return NULL; /* there are no others */
}

/* There is no device: posted work requests complete when poll() is called. */
static void combine(struct arena *arena)
{
	struct rbx_chain chain;

	while (rbx_channel_combine(&arena->channel, 1, &chain))
		continue;
}

/* Run by one thread. Completes all that is posted, and lets a parked combiner go on. */
static void poll(struct arena *arena)
{
	struct rbx_send_ring *ring = &arena->channel.rings[0];
	struct rbx_harvest harvest = { 0 };
	uint32_t used_count = rbx_send_ring_used(ring);

	if (used_count) {
		rbx_channel_complete(&arena->channel, 0,
				     ring->completed_count + used_count - 1, 0,
				     2, &harvest);
		rbx_harvest_settle(&harvest, &arena->window, 2);
		(void)ended(harvest.done_first);
	}
	if (rbx_channel_unpark(&arena->channel))
		combine(arena);
}

static void round_submit(struct racer *racer, uint32_t round)
{
	struct rbx_fragment *fragments = racer->fragments;
	uint32_t i;

	RBX_EXCHANGE(&racer->left, FRAGMENTS_AT_ONCE);
	for (i = 0; i < FRAGMENTS_AT_ONCE; i++) {
		fragments[i] = (struct rbx_fragment){
			.direction = (uint8_t)(round & 1),
			.flags = RBX_FRAGMENT_HAS_LKEY,
			.remote_addr = 4096ull * (i * 7 % FRAGMENTS_AT_ONCE),
			.local_addr = (uintptr_t)racer,
			.length_bytes = 4096,
			.lkey = UNDER_WAY,
			.done = ended,
		};
		fragments[i].node.next = i + 1 < FRAGMENTS_AT_ONCE ?
						 &fragments[i + 1].node :
						 NULL;
	}
	if (rbx_channel_submit(&racer->arena->channel, &fragments[0],
			       &fragments[FRAGMENTS_AT_ONCE - 1]))
		combine(racer->arena);
	while (RBX_LOAD_ACQUIRE(&racer->left))
		cond_resched();
}

static int race(void *argument)
{
	struct racer *racer = argument;
	struct arena *arena = racer->arena;
	uint32_t round;

	/* All threads begin at the same time. */
	RBX_FETCH_ADD(&arena->started_count, 1);
	while (RBX_LOAD_ACQUIRE(&arena->started_count) != arena->thread_count)
		cond_resched();
	for (round = 0; round < FRAGMENTS_PER_THREAD / FRAGMENTS_AT_ONCE;
	     round++)
		round_submit(racer, round);
	kthread_complete_and_exit(&racer->stopped, 0);
}

static struct arena *arena_make(struct rbx_work **works)
{
	struct arena *arena = kvzalloc(sizeof(*arena), GFP_KERNEL);

	*works = kvcalloc(RBX_SEND_DEPTH, sizeof(**works), GFP_KERNEL);
	if (!arena || !*works) {
		kvfree(*works);
		kvfree(arena);
		return NULL;
	}
	arena->planner = (struct rbx_planner){
		.merge = true,
		.chain_max = RBX_CHAIN_MAX,
		.sge_max = 8,
		.message_bytes_max = RBX_MERGE_BYTES_MAX,
		.staging = &arena->staging,
	};
	/* One work request at a time, so that combiners park. */
	rbx_window_init(&arena->window, 8 * 4096, 1);
	rbx_channel_init(&arena->channel, &arena->planner, &arena->window);
	rbx_channel_add_ring(&arena->channel, *works, RBX_SEND_DEPTH);
	return arena;
}

static int channel_test(void)
{
	uint32_t count = min_t(uint32_t, num_online_cpus(), THREADS_MAX), i;
	struct rbx_work *works;
	struct arena *arena = arena_make(&works);
	struct racer *racers = kvcalloc(count, sizeof(*racers), GFP_KERNEL);
	int err = -ENOMEM;

	if (!arena || !racers)
		goto out_free;
	arena->thread_count = count;
	for (i = 0; i < count; i++) {
		racers[i].arena = arena;
		init_completion(&racers[i].stopped);
		racers[i].thread =
			kthread_create(race, &racers[i], "rbx_selftest/%u", i);
		if (IS_ERR(racers[i].thread)) {
			/* Those that were created before do not run yet. */
			while (i--)
				kthread_stop(racers[i].thread);
			goto out_free;
		}
	}
	for (i = 0; i < count; i++)
		wake_up_process(racers[i].thread);
	while (RBX_LOAD_ACQUIRE(&arena->ended_count) <
	       (uint64_t)count * FRAGMENTS_PER_THREAD) {
		poll(arena);
		cond_resched();
	}
	for (i = 0; i < count; i++)
		wait_for_completion(&racers[i].stopped);
	err = check(arena->ended_count ==
				    (uint64_t)count * FRAGMENTS_PER_THREAD &&
			    arena->junk_count == 0 &&
			    arena->channel.counters.window_waits != 0 &&
			    rbx_window_idle(&arena->window),
		    "the channel");
	if (!err)
		pr_info("rdmabox: selftest: %llu fragments of %u threads, %llu merged, %llu waits\n",
			arena->ended_count, count,
			arena->channel.counters.merged_requests,
			arena->channel.counters.window_waits);
out_free:
	kvfree(racers);
	if (arena) {
		kvfree(works);
		kvfree(arena);
	}
	return err;
}

int rbx_selftest(void)
{
	int err;

	err = crc_test();
	if (!err)
		err = hmac_test();
	if (!err)
		err = wire_test();
	if (!err)
		err = memory_test();
	if (!err)
		err = channel_test();
	if (!err)
		pr_info("rdmabox: selftest passed\n");
	return err;
}
