/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * load.c - the load of a client's program, and the checks of each request.
 *
 * Its threads submit bursts of requests, singly and in batches, with pauses in which all
 * comes to rest. Some requests are followed by others from their own callback, on the
 * poller's thread. From time to time a thread waits for one.
 *
 * A request completes once. A read returns what the oracle allows. A request fails only if
 * every replica was lost, and the harm always leaves one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>

#include "lib/volume/volume.h"
#include "sim/fail.h"
#include "sim/sites.h"
#include "sim/tally.h"
#include "sim/trace.h"
#include "sim/world.h"

#define BURST_MAX 64u
#define BATCH_MAX 8u
/* For one in so many requests its thread waits. */
#define ONE_IN_WAITS 32u
/* And one in so many is followed by others from its callback. */
#define ONE_IN_FOLLOWS 4u
#define FOLLOWERS_MAX 8u
/* And one in so many batches is held back by a plug. */
#define ONE_IN_PLUGGED 4u
/* Part of the peer timeout: for the transfer itself, behind others, with a clock that is off. */
#define WAIT_SLACK_PART 10u

static bool wants_more(void)
{
	return !rbx_sim_world.stopping &&
	       rbx_sim_requests_done() < rbx_sim_world.requests_wanted;
}

static uint64_t draw_offset(struct rbx_sim_client *client,
			    uint32_t length_bytes)
{
	const struct rbx_sim_load *load = &client->load;
	uint64_t range = client->size_bytes;

	if (load->hot_bytes >= length_bytes && load->hot_bytes < range &&
	    rbx_random_below(&client->random, 4))
		range = load->hot_bytes;
	return rbx_sim_between(&client->random, 0,
			       (range - length_bytes) / load->unit_bytes) *
	       load->unit_bytes;
}

static uint8_t draw_flags(struct rbx_sim_client *client)
{
	uint32_t of_hundred = rbx_random_below(&client->random, 100);

	if (!client->load.has_flags || of_hundred >= 10)
		return 0;
	return of_hundred < 2 ? RBX_FENCE :
	       of_hundred < 4 ? RBX_NO_MERGE :
				RBX_URGENT;
}

static void done(struct rbx_request *request);

/* Fills in a slot for a new request. */
static void aim(struct rbx_sim_slot *slot)
{
	struct rbx_sim_client *client = slot->client;
	struct rbx_request *request = &slot->request;
	const struct rbx_sim_load *load = &client->load;
	uint32_t units_max = (uint32_t)RBX_MIN(
		(uint64_t)load->units_max, client->size_bytes / load->unit_bytes);
	bool is_read = rbx_random_below(&client->random, 100) <
		       load->read_percent;

	request->op = is_read ? RBX_READ : RBX_WRITE;
	request->flags = draw_flags(client);
	request->length_bytes =
		load->unit_bytes *
		(1 + rbx_random_below(&client->random, units_max));
	request->offset = draw_offset(client, request->length_bytes);
	request->complete = done;
	request->user = slot;
	if (is_read)
		slot->submitted = rbx_sim_oracle_moment(client->oracle);
	else
		slot->number = rbx_sim_oracle_write(client->oracle,
						    request->offset,
						    request->buf,
						    request->length_bytes);
	slot->at_ns = rbx_sim_now();
	slot->is_outstanding = true;
	client->outstanding_count++;
}

/* The oldest moment that an outstanding read may depend on. */
static void forget_old(struct rbx_sim_client *client)
{
	uint64_t oldest = rbx_sim_oracle_moment(client->oracle);

	for (uint32_t i = 0; i < client->slots_count; i++) {
		const struct rbx_sim_slot *slot = &client->slots[i];

		if (slot->is_outstanding && slot->request.op == RBX_READ)
			oldest = RBX_MIN(oldest, slot->submitted);
	}
	oldest = RBX_MIN(oldest, rbx_sim_rival_oldest(client));
	oldest = RBX_MIN(oldest, rbx_sim_beside_oldest(client));
	rbx_sim_oracle_forget(client->oracle, oldest);
}

static void judge_failure(const struct rbx_sim_client *client,
			  const struct rbx_request *request)
{
	rbx_sim_fail("survives",
		     "client %u: %s of %u bytes at %llu ends with %d: %s",
		     client->index, request->op == RBX_READ ? "read" : "write",
		     request->length_bytes,
		     (unsigned long long)request->offset, request->status,
		     strerror(-request->status));
}

/* If a request's own memory was bad, it fails, and nothing else may. */
bool rbx_sim_memory_excuses(const struct rbx_request *request)
{
	if (request->status != -EFAULT ||
	    rbx_sim_site_fired(RBX_SIM_SITE_bad_memory) +
			    rbx_sim_site_fired(RBX_SIM_SITE_bad_memory_late) ==
		    0)
		return false;
	rbx_sim_tally(RBX_SIM_TALLY_failed_here, 1);
	return true;
}

/*
 * A server that falls silent costs a request the peer timeout at most, from the server's last
 * message on, which comes before the request; then another replica serves it. Nothing else
 * may be slow then. A first write also waits for memory, of its slab and of those that are
 * lent and given back before.
 */
static void check_wait(const struct rbx_sim_client *client, uint64_t waited_ns)
{
	uint64_t timeout_ns = client->options.peer_timeout_ms * RBX_SIM_MS;

	if (rbx_sim_world.waits_bounded &&
	    rbx_sim_site_fired(RBX_SIM_SITE_memory_slow) == 0 &&
	    waited_ns > timeout_ns + timeout_ns / WAIT_SLACK_PART)
		rbx_sim_fail("wait", "client %u: a request takes %llu ms, with a peer timeout of %u ms",
			     client->index,
			     (unsigned long long)(waited_ns / RBX_SIM_MS),
			     client->options.peer_timeout_ms);
}

/* Whatever it was, it has ended. */
static void account(struct rbx_sim_slot *slot)
{
	struct rbx_sim_client *client = slot->client;
	struct rbx_request *request = &slot->request;

	RBX_SIM_TRACE(client->node, "done", "offset", request->offset, "status",
		      (uint32_t)-request->status);
	if (request->status != 0 && !rbx_sim_memory_excuses(request) &&
	    !rbx_sim_discards_excuse(client, request) &&
	    !rbx_sim_loss_excuses(client, request) && !rbx_sim_outage_excuses(client, slot))
		judge_failure(client, request);
	if (request->op == RBX_READ && request->status == 0)
		rbx_sim_oracle_read(client->oracle, request->offset,
				    request->buf, request->length_bytes,
				    slot->submitted);
	else if (request->op == RBX_WRITE)
		rbx_sim_oracle_written(client->oracle, request->offset,
				       request->length_bytes, slot->number,
				       request->status);
	/* The buffer is ours again; a late reader finds junk. */
	if (!rbx_sim_world.is_quiet)
		memset(request->buf, 0xee, request->length_bytes);
	slot->is_outstanding = false;
	client->outstanding_count--;
	client->done_count++;
	check_wait(client, rbx_sim_now() - slot->at_ns);
	if (client->done_count % 64 == 0)
		forget_old(client);
}

static void done(struct rbx_request *request)
{
	struct rbx_sim_slot *slot = request->user;
	struct rbx_sim_client *client = slot->client;
	struct rbx_request *again = &slot->request;

	if (!slot->is_outstanding)
		rbx_sim_fail("completed-once", "client %u: a request at %llu completes twice",
			     client->index, (unsigned long long)request->offset);
	rbx_sim_tally(RBX_SIM_TALLY_requests, 1);
	account(slot);
	if (slot->more_count != 0 && wants_more()) {
		slot->more_count--;
		aim(slot);
		if (rbx_submit(client->volume, &again, 1) == 0)
			return;
		/* No room: it was never submitted. */
		if (again->op == RBX_WRITE)
			rbx_sim_oracle_written(client->oracle, again->offset,
					       again->length_bytes,
					       slot->number, -EAGAIN);
		slot->is_outstanding = false;
		client->outstanding_count--;
	}
	rbx_sim_wake_all(&client->waiters);
}

/* A free slot of a thread; waits for one. NULL: the load has ended. */
static struct rbx_sim_slot *slot_wait(struct rbx_sim_client *client,
				      struct rbx_sim_slot *slots)
{
	while (wants_more()) {
		for (uint32_t i = 0; i < client->load.depth_count; i++)
			if (!slots[i].is_outstanding)
				return &slots[i];
		(void)rbx_sim_wait(&client->waiters, RBX_SIM_FOREVER);
	}
	return NULL;
}

static void submit(struct rbx_sim_client *client, struct rbx_request **requests,
		   uint32_t count)
{
	int err;

	while ((err = rbx_submit(client->volume, requests, count)) == -EAGAIN)
		(void)rbx_wait_room(client->ctx, 10);
	if (err)
		rbx_sim_fail("survives", "client %u cannot submit: %s",
			     client->index, rbx_last_error());
}

/* One by one, held back by a plug until all are there. */
static void submit_plugged(struct rbx_sim_client *client,
			   struct rbx_request **requests, uint32_t count)
{
	rbx_sim_tally(RBX_SIM_TALLY_plugs, 1);
	rbx_plug(client->ctx);
	for (uint32_t i = 0; i < count; i++)
		submit(client, &requests[i], 1);
	rbx_unplug(client->ctx);
}

static uint32_t batch(struct rbx_sim_client *client, struct rbx_sim_slot *slots)
{
	uint32_t count = 1 + rbx_random_below(&client->random, BATCH_MAX);
	struct rbx_request *requests[BATCH_MAX];
	uint32_t filled = 0;

	/* One call may have as many requests as may be outstanding. */
	while (filled < count && (filled == 0 || client->load.units_max < 8)) {
		struct rbx_sim_slot *slot = NULL;

		for (uint32_t i = 0; i < client->load.depth_count && !slot; i++)
			if (!slots[i].is_outstanding)
				slot = &slots[i];
		if (!slot && filled == 0)
			slot = slot_wait(client, slots);
		if (!slot)
			break;
		aim(slot);
		slot->more_count =
			rbx_random_below(&client->random, ONE_IN_FOLLOWS) ?
				0 :
				rbx_random_below(&client->random,
						 FOLLOWERS_MAX);
		requests[filled++] = &slot->request;
	}
	if (filled > 1 && client->load.has_flags &&
	    rbx_random_below(&client->random, ONE_IN_PLUGGED) == 0)
		submit_plugged(client, requests, filled);
	else if (filled != 0)
		submit(client, requests, filled);
	return filled;
}

/* A request by the blocking calls. */
static void wait_for_one(struct rbx_sim_client *client,
			 struct rbx_sim_slot *slots)
{
	struct rbx_sim_slot *slot = slot_wait(client, slots);
	struct rbx_request *request;

	if (!slot)
		return;
	aim(slot);
	request = &slot->request;
	request->status =
		request->op == RBX_READ ?
			rbx_read(client->volume, request->buf,
				 request->length_bytes, request->offset) :
			rbx_write(client->volume, request->buf,
				  request->length_bytes, request->offset);
	slot->more_count = 0;
	account(slot);
	rbx_sim_wake_all(&client->waiters);
}

struct thread {
	struct rbx_sim_client *client;
	struct rbx_sim_slot *slots;
};

static void *thread_main(void *arg)
{
	struct thread thread = *(struct thread *)arg;
	struct rbx_sim_client *client = thread.client;

	free(arg);
	while (wants_more()) {
		uint32_t left =
			1 + rbx_random_below(&client->random, BURST_MAX);

		while (left != 0 && wants_more()) {
			uint32_t sent = 1;

			if (rbx_random_below(&client->random, ONE_IN_WAITS))
				sent = batch(client, thread.slots);
			else
				wait_for_one(client, thread.slots);
			left -= RBX_MIN(sent, left);
		}
		if (client->load.think_ns_max)
			rbx_sim_sleep(rbx_sim_between(
				&client->random, 0,
				client->load.think_ns_max));
	}
	return NULL;
}

void rbx_sim_load_start(struct rbx_sim_client *client)
{
	const struct rbx_sim_load *load = &client->load;
	size_t buffer_bytes = (size_t)load->unit_bytes * load->units_max;

	client->slots_count = load->threads_count * load->depth_count;
	client->slots = calloc(client->slots_count, sizeof(*client->slots));
	client->buffers = mmap(NULL, client->slots_count * buffer_bytes,
			       PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!client->slots || client->buffers == MAP_FAILED)
		abort();
	for (uint32_t i = 0; i < client->slots_count; i++) {
		client->slots[i].client = client;
		client->slots[i].request.buf =
			client->buffers + i * buffer_bytes;
	}
	for (uint32_t i = 0; i < load->threads_count; i++) {
		struct thread *thread = malloc(sizeof(*thread));

		if (!thread)
			abort();
		thread->client = client;
		thread->slots = &client->slots[i * load->depth_count];
		client->threads[i] =
			rbx_sim_spawn(client->node, thread_main, thread);
	}
	rbx_sim_talk_start(client);
	rbx_sim_visits_start(client);
	rbx_sim_discards_start(client);
}

void rbx_sim_load_join(struct rbx_sim_client *client)
{
	for (uint32_t i = 0; i < client->load.threads_count; i++)
		(void)rbx_sim_join(client->threads[i]);
	rbx_sim_talk_join(client);
	rbx_sim_visits_join(client);
	rbx_sim_discards_join(client);
}

void rbx_sim_load_abandon(struct rbx_sim_client *client)
{
	for (uint32_t i = 0; i < client->slots_count; i++) {
		struct rbx_sim_slot *slot = &client->slots[i];
		const struct rbx_request *request = &slot->request;

		if (slot->is_outstanding && request->op == RBX_WRITE)
			rbx_sim_oracle_written(client->oracle, request->offset,
					       request->length_bytes, slot->number,
					       -ECANCELED);
		slot->is_outstanding = false;
	}
}

void rbx_sim_load_free(struct rbx_sim_client *client)
{
	munmap(client->buffers, (size_t)client->slots_count *
					client->load.unit_bytes *
					client->load.units_max);
	free(client->slots);
}
