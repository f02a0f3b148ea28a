/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint_end.c - one end of a connection, from its queue to its close.
 *
 * It sends messages and works on the memory of the other end (endpoint_ops.c), and receives,
 * until one end has done enough, its key ends, or something fails. Then it disconnects and
 * waits for all that it has posted; or it closes at once.
 */
#include "sim/endpoint_end.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fail.h"
#include "sim/fiber.h"
#include "sim/tally.h"

/* An end that has received nothing for so long leaves: the other may have lost its power. */
#define SILENCE_NS (6000 * RBX_SIM_MS)

#define PAGE 4096u

static void need(int err, const char *what)
{
	if (err)
		rbx_sim_fail("start", "%s: %s", what, rbx_last_error());
}

static void *memory(size_t bytes)
{
	void *memory = NULL;

	if (posix_memalign(&memory, PAGE, bytes))
		abort();
	memset(memory, 0, bytes);
	return memory;
}

/* ---- Making one ------------------------------------------------------------- */

struct rbx_sim_end *rbx_sim_end_make(struct rbx_context *ctx, uint32_t side,
				     struct rbx_random *random)
{
	struct rbx_sim_end *end = memory(sizeof(*end));
	struct rbx_region_key key;

	end->ctx = ctx;
	end->side = side;
	rbx_random_seed(&end->random, rbx_random_next(random));
	random = &end->random;
	end->buffers = memory(sizeof(*end->buffers));
	end->exported = memory(sizeof(*end->exported));
	end->gift = memory(PAGE);
	need(rbx_protection_domain_create(ctx, &end->domain), "domain");
	need(rbx_region_export(ctx, end->domain, end->buffers,
			       sizeof(*end->buffers), 0, &end->local),
	     "local");
	need(rbx_region_export(ctx, end->domain, end->exported,
			       sizeof(*end->exported),
			       RBX_REGION_READ | RBX_REGION_WRITE |
				       RBX_REGION_ATOMIC,
			       &end->export),
	     "export");
	need(rbx_region_export(ctx, end->domain, end->gift, PAGE,
			       RBX_REGION_WRITE | RBX_REGION_INVALIDATE,
			       &end->gift_region),
	     "gift");
	rbx_region_key(end->gift_region, &key);
	end->gift_key = key.key;
	end->messages_most = 1 + rbx_random_below(random,
						  RBX_SIM_MESSAGES_MAX - 1);
	end->says_last = rbx_random_below(random, 2);
	end->options = (struct rbx_endpoint_options){
		.size_bytes = sizeof(end->options),
		.paced = rbx_random_below(random, 3) == 0,
		.domain = end->domain,
		.send_depth = 1u << rbx_random_below(random, 7),
		.receive_depth = RBX_SIM_RECEIVES,
		.segments = 1,
		.receive_segments = 1 + rbx_random_below(random, 2),
		.timeout_ms = 3000,
		.user = end,
	};
	need(rbx_queue_create(ctx,
			      end->options.send_depth +
				      end->options.receive_depth + 1,
			      &end->options.queue),
	     "queue");
	return end;
}

const struct rbx_endpoint_options *
rbx_sim_end_options(const struct rbx_sim_end *end)
{
	return &end->options;
}

void rbx_sim_end_hello(struct rbx_sim_end *end, uint32_t connection,
		       struct rbx_sim_hello *hello)
{
	struct rbx_region_key exported;

	rbx_region_key(end->export, &exported);
	end->connection = connection;
	*hello = (struct rbx_sim_hello){
		.exported = exported.address,
		.gift = (uintptr_t)end->gift,
		.exported_key = exported.key,
		.gift_key = end->gift_key,
		.connection = connection,
	};
}

static void end_free(struct rbx_sim_end *end)
{
	rbx_region_release(end->export);
	rbx_region_release(end->gift_region);
	rbx_region_release(end->local);
	need(rbx_protection_domain_destroy(end->domain), "domain destroy");
	need(rbx_queue_destroy(end->options.queue), "queue destroy");
	free(end->buffers);
	free(end->exported);
	free(end->gift);
	free(end);
}

/* ---- Receives ---------------------------------------------------------------*/

/* The second half of the buffer first, if there are two segments. */
static void receive_post(struct rbx_sim_end *end, struct rbx_sim_receive *receive)
{
	const uint32_t half = RBX_SIM_TEXT_BYTES / 2;
	bool is_split = end->options.receive_segments == 2;
	const struct rbx_segment segments[] = {
		{ is_split ? receive->text + half : receive->text,
		  is_split ? half : RBX_SIM_TEXT_BYTES, end->local },
		{ receive->text, half, end->local },
	};
	const struct rbx_receive one = { segments, is_split ? 2 : 1, receive };

	receive->is_posted = true;
	need(rbx_endpoint_receive(end->endpoint, &one, 1), "receive");
}

static void received(struct rbx_sim_end *end,
		     const struct rbx_completion *completion)
{
	const uint32_t half = RBX_SIM_TEXT_BYTES / 2;
	struct rbx_sim_receive *receive = completion->user;
	uint8_t text[RBX_SIM_TEXT_BYTES];

	if (!receive->is_posted)
		rbx_sim_fail("completed-once", "a receive ends twice");
	receive->is_posted = false;
	if (completion->status != 0) {
		end->is_over = true;
		return;
	}
	end->heard_at_ns = rbx_sim_now();
	if (end->options.receive_segments == 2) {
		memcpy(text, receive->text + half, half);
		memcpy(text + half, receive->text, half);
	} else {
		memcpy(text, receive->text, sizeof(text));
	}
	rbx_sim_endpoint_heard(end->connection, end->side, completion, text,
			       end->export ? end->exported : NULL,
			       end->gift_key);
	if (completion->has_invalidated)
		rbx_sim_stamp(end->gift, PAGE);
	receive_post(end, receive);
}

static bool some_receive_is_posted(const struct rbx_sim_end *end)
{
	for (uint32_t i = 0; i < RBX_SIM_RECEIVES; i++)
		if (end->buffers->receives[i].is_posted)
			return true;
	return false;
}

/* ---- Its life ---------------------------------------------------------------*/

/* Takes completions; false: there are none. */
static bool take(struct rbx_sim_end *end, int timeout_ms)
{
	struct rbx_completion completions[8];
	int count = rbx_queue_poll(end->options.queue, completions, 8,
				   timeout_ms);

	need(count < 0, "poll");
	for (int i = 0; i < count; i++) {
		if (completions[i].kind == RBX_COMPLETION_POSTED)
			rbx_sim_ops_ended(end, &completions[i]);
		else
			received(end, &completions[i]);
	}
	return count != 0;
}

/* When it returns, no peer reaches the memory. */
static void export_end(struct rbx_sim_end *end)
{
	rbx_region_release(end->export);
	end->export = NULL;
	rbx_sim_stamp(end->exported, sizeof(*end->exported));
}

static bool goes_on(struct rbx_sim_end *end)
{
	const struct rbx_sim_stream *stream = rbx_sim_end_stream(end);
	bool has_said_all = stream->said == end->messages_most &&
			    !rbx_sim_ops_wait(end);

	return !end->is_over && !rbx_sim_world.stopping &&
	       rbx_sim_now() - end->heard_at_ns < SILENCE_NS &&
	       !(has_said_all && rbx_random_below(&end->random, 16) == 0);
}

static void talk(struct rbx_sim_end *end)
{
	const struct rbx_sim_stream *stream = rbx_sim_end_stream(end);
	bool has_given = false;

	while (goes_on(end)) {
		rbx_sim_ops_post(end);
		if (stream->gift_has_ended && !has_given && !end->is_over) {
			rbx_sim_ops_post_gift(end, true);
			has_given = true;
		}
		(void)take(end, (int)rbx_random_below(&end->random, 10));
		if (end->export && rbx_random_below(&end->random, 200) == 0)
			export_end(end);
	}
}

/* All that is posted ends, and what is posted now fails. */
static void drain(struct rbx_sim_end *end)
{
	uint64_t moved_at_ns = rbx_sim_now();

	rbx_endpoint_disconnect(end->endpoint);
	if (!end->is_cut_short)
		rbx_sim_ops_post_gift(end, true);
	end->is_over = true;
	while (some_receive_is_posted(end) || rbx_sim_ops_wait(end)) {
		if (take(end, 10))
			moved_at_ns = rbx_sim_now();
		if (rbx_sim_now() - moved_at_ns > RBX_SIM_ENDS_NS)
			rbx_sim_fail("liveness", "connection %u: what is posted does not end",
				     end->connection);
	}
	while (take(end, 10))
		;
	rbx_sim_ops_drained(end);
	rbx_sim_endpoint_drained(end->connection, end->side);
}

void rbx_sim_end_run(struct rbx_sim_end *end, struct rbx_endpoint *endpoint,
		     const struct rbx_sim_hello *other)
{
	if (endpoint) {
		end->endpoint = endpoint;
		end->other = *other;
		end->heard_at_ns = rbx_sim_now();
		for (uint32_t i = 0; i < RBX_SIM_RECEIVES; i++)
			receive_post(end, &end->buffers->receives[i]);
		talk(end);
		if (rbx_random_below(&end->random, 4) != 0)
			drain(end);
		need(rbx_endpoint_close(endpoint), "close");
	}
	if (end->export)
		export_end(end);
	rbx_sim_sleep(rbx_sim_between(&end->random, 0, 30 * RBX_SIM_MS));
	rbx_sim_stamp_check(end->exported, sizeof(*end->exported),
			    "exported memory");
	if (endpoint && rbx_sim_connections[end->connection]
				.streams[!end->side]
				.gift_has_ended)
		rbx_sim_stamp_check(end->gift, PAGE, "invalidated memory");
	end_free(end);
}
