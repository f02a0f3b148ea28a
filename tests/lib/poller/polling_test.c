/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * polling_test.c - the policies on real pollers: what their numbers say, that
 * they may be changed under load, and which pollers go with which policy.
 */
#include "tests/lib/tenant.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/port.h"
#include "lib/context.h"
#include "lib/poller/poller.h"

#define PAGE 4096u
#define SLOTS 8u

static const char *const policies[] = {
	"busy",	    "event",	    "event-batch:4", "hybrid",
	"adaptive", "adaptive:120", "adaptive:3:2",  "shared:2",
};

#define POLICIES (sizeof(policies) / sizeof(policies[0]))

/* Requests that go round until told to stop. */
struct load {
	struct tenant tenant;
	struct rbx_request requests[SLOTS];
	uint8_t bytes[SLOTS * PAGE];
	uint32_t stop; /* atomic */
	uint32_t done_count; /* atomic */
	uint32_t ended_count; /* atomic: requests that go no further */
	uint32_t failed_count; /* atomic */
};

static void go_round(struct rbx_request *request)
{
	struct load *load = request->user;

	if (request->status)
		RBX_FETCH_ADD(&load->failed_count, 1);
	RBX_FETCH_ADD(&load->done_count, 1);
	if (RBX_LOAD_ACQUIRE(&load->stop) ||
	    rbx_remote_submit(load->tenant.remote, &request, 1))
		RBX_FETCH_ADD(&load->ended_count, 1);
}

static void start(struct load *load, const char *settings,
		  void (*complete)(struct rbx_request *request))
{
	memset(load, 0, sizeof(*load));
	tenant_open(&load->tenant, settings);
	for (uint32_t i = 0; i < SLOTS; i++) {
		load->requests[i] = (struct rbx_request){
			.op = i % 2 ? RBX_READ : RBX_WRITE,
			.length_bytes = PAGE,
			.offset = i * PAGE,
			.buf = load->bytes + i * PAGE,
			.complete = complete,
			.user = load,
		};
		tenant_submit(&load->tenant, &load->requests[i]);
	}
}

static void load_start(struct load *load, const char *settings)
{
	start(load, settings, go_round);
}

/* Until so many more requests are done. */
static void load_run(struct load *load, uint32_t count)
{
	tenant_wait(load->tenant.ctx, &load->done_count,
		    RBX_LOAD_ACQUIRE(&load->done_count) + count, false);
}

static void load_stop(struct load *load)
{
	RBX_STORE_RELEASE(&load->stop, 1);
	tenant_wait(load->tenant.ctx, &load->ended_count, SLOTS, false);
	assert_int_equal(load->failed_count, 0);
	tenant_close(&load->tenant);
}

/* ---- What the numbers say --------------------------------------------------*/

static struct rbx_stats measured(const char *settings)
{
	struct rbx_stats stats;
	struct load load;

	load_start(&load, settings);
	load_run(&load, 2000);
	stats = tenant_stats(load.tenant.ctx);
	load_stop(&load);
	assert_true(stats.polls >= stats.empty_polls);
	assert_true(stats.poller_cpu_ns > 0);
	return stats;
}

static void polling_busy_and_shared_never_sleep(void **state)
{
	static const char *const settings[] = { "polling=busy",
						"polling=shared:2" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct rbx_stats stats = measured(settings[i]);

		assert_int_equal(stats.arms, 0);
		assert_int_equal(stats.wakeups, 0);
	}
}

static void polling_event_arms_for_each_completion(void **state)
{
	struct rbx_stats stats = measured("polling=event mode=single");

	(void)state;
	assert_true(stats.arms >= stats.completions - 1);
	assert_true(stats.wakeups > 0);
	assert_true(stats.context_switches > 0);
}

static void polling_event_batch_arms_for_each_batch(void **state)
{
	struct rbx_stats stats = measured("polling=event-batch:4 mode=single");

	(void)state;
	assert_true(stats.arms >= stats.completions / 4 - 1);
	assert_true(stats.wakeups > 0);
}

static void polling_hybrid_arms_after_empty_polls_only(void **state)
{
	struct rbx_stats stats = measured("polling=hybrid");

	(void)state;
	assert_true(stats.arms > 0);
	assert_true(stats.arms <= stats.empty_polls);
}

/* ---- Changed while it is open ----------------------------------------------*/

static void polling_set_changes_a_live_context(void **state)
{
	struct load load;

	(void)state;
	load_start(&load, "pollers=2");
	for (size_t round = 0; round < 3 * POLICIES; round++) {
		const char *policy = policies[round * 5 % POLICIES];
		char line[64], text[4096];

		assert_int_equal(rbx_polling_set(load.tenant.ctx, policy), 0);
		load_run(&load, 200);
		rbx_describe(load.tenant.ctx, text, sizeof(text));
		snprintf(line, sizeof(line), "polling=%s\n", policy);
		assert_non_null(strstr(text, line));
	}
	load_stop(&load);
}

static void polling_set_wakes_a_sleeper(void **state)
{
	struct tenant tenant;
	uint64_t polls;

	(void)state;
	tenant_open(&tenant, "polling=event");
	assert_int_equal(rbx_polling_set(tenant.ctx, "busy"), 0);
	/* Nothing completes: only a busy poller counts polls by itself. */
	polls = tenant_stats(tenant.ctx).polls;
	for (int i = 0; i < 100000; i++) {
		if (tenant_stats(tenant.ctx).polls > polls + 1000)
			break;
	}
	assert_true(tenant_stats(tenant.ctx).polls > polls + 1000);
	tenant_close(&tenant);
}

static void *change(void *arg)
{
	struct load *load = arg;

	for (size_t i = 0; i < 200; i++)
		(void)rbx_polling_set(load->tenant.ctx,
				      policies[i % POLICIES]);
	return NULL;
}

static void polling_set_from_two_threads_is_orderly(void **state)
{
	pthread_t threads[2];
	struct load load;

	(void)state;
	load_start(&load, "pollers=2 queue_pairs=2");
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, change, &load), 0);
	load_run(&load, 1000);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	load_stop(&load);
}

static void refuses(struct rbx_context *ctx, const char *policy, int err,
		    const char *word)
{
	assert_int_equal(rbx_polling_set(ctx, policy), err);
	if (!strstr(rbx_last_error(), word))
		fail_msg("%s: \"%s\" does not say %s", policy,
			 rbx_last_error(), word);
}

static void polling_set_refuses_what_cannot_be(void **state)
{
	struct rbx_context *ctx = tenant_context("");

	(void)state;
	refuses(ctx, "lazy", -EINVAL, "adaptive");
	refuses(ctx, "a policy of far more than so many characters", -EINVAL,
		"characters");
	refuses(ctx, "shared:2", -EBUSY, "shared:2");
	assert_int_equal(rbx_polling_set(ctx, "shared:1"), 0);
	rbx_close(ctx);
	ctx = tenant_context("pollers=0");
	refuses(ctx, "busy", -EBUSY, "pollers=0");
	rbx_close(ctx);
	ctx = tenant_context("pollers=peer");
	refuses(ctx, "shared:1", -EBUSY, "shared:1");
	rbx_close(ctx);
}

static void set_in_callback(struct rbx_request *request)
{
	struct load *load = request->user;

	if (rbx_polling_set(load->tenant.ctx, "busy") != -EDEADLK)
		RBX_FETCH_ADD(&load->failed_count, 1);
	RBX_FETCH_ADD(&load->ended_count, 1);
}

static void polling_set_in_a_callback_is_refused(void **state)
{
	struct load load;

	(void)state;
	start(&load, "", set_in_callback);
	load_stop(&load);
}

static void polling_shared_beside_other_pollers_is_refused(void **state)
{
	static const char *const settings[] = { "pollers=0", "pollers=3",
						"pollers=peer" };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct rbx_options options;
		struct rbx_context *ctx;

		rbx_options_defaults(&options);
		assert_int_equal(rbx_options_set(&options, "polling=shared:2"),
				 0);
		assert_int_equal(rbx_options_set(&options, settings[i]), 0);
		assert_int_equal(rbx_open(&ctx, &options), -EINVAL);
		assert_non_null(strstr(rbx_last_error(), "shared:2"));
	}
}

/* ---- Which pollers ---------------------------------------------------------*/

#define PEERS 3u

/* Peers come, work, and go, twice over. */
static void use_peers(const char *settings)
{
	struct rbx_server *server = tenant_server();
	struct rbx_context *ctx = tenant_context(settings);
	uint8_t page[PAGE] = { 1 };

	for (int round = 0; round < 2; round++) {
		struct tenant tenants[PEERS];

		for (uint32_t i = 0; i < PEERS; i++) {
			tenants[i].ctx = ctx;
			assert_int_equal(
				rbx_peer_connect(ctx, &tenants[i].peer,
						 rbx_server_address(server)),
				0);
			assert_int_equal(rbx_borrow(tenants[i].peer,
						    &tenants[i].remote, PAGE),
					 0);
		}
		for (uint32_t i = 0; i < 30 * PEERS; i++)
			assert_int_equal(tenant_transfer(&tenants[i % PEERS],
							 RBX_WRITE, page, PAGE,
							 0),
					 0);
		for (uint32_t i = 0; i < PEERS; i++) {
			rbx_return(tenants[i].remote);
			rbx_peer_close(tenants[i].peer);
		}
	}
	rbx_close(ctx);
	rbx_server_stop(server);
}

static void pollers_come_with_their_peers(void **state)
{
	(void)state;
	use_peers("pollers=peer");
	use_peers("pollers=peer queue_pairs=3 polling=hybrid");
	use_peers("pollers=queue_pair queue_pairs=2 polling=event");
	use_peers("pollers=2 queue_pairs=2");
	use_peers("polling=shared:2");
}

static void pollers_of_queue_pairs_share_one_peers_load(void **state)
{
	struct load load;

	(void)state;
	load_start(&load, "pollers=queue_pair queue_pairs=4 mode=single");
	load_run(&load, 5000);
	load_stop(&load);
}

/* 64 pollers, 16 to a peer: the fifth peer has none. */
static void pollers_that_cannot_be_had_are_named(void **state)
{
	struct rbx_server *server = tenant_server();
	struct rbx_context *ctx =
		tenant_context("pollers=queue_pair queue_pairs=16");
	struct rbx_peer *peers[5];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(rbx_peer_connect(ctx, &peers[i],
						  rbx_server_address(server)),
				 0);
	assert_int_equal(rbx_peer_connect(ctx, &peers[4],
					  rbx_server_address(server)),
			 -ENOSPC);
	assert_non_null(strstr(rbx_last_error(), "64"));
	for (int i = 0; i < 4; i++)
		rbx_peer_close(peers[i]);
	rbx_close(ctx);
	rbx_server_stop(server);
}

struct swap {
	struct rbx_cq *cq;
	int event_fd; /* the other one */
	uint32_t times_count;
};

/* On the poller's thread, which alone looks at it. */
static void event_fd_swap(struct rbx_request *request)
{
	struct swap *swap = request->user;
	int before = swap->cq->event_fd;

	swap->cq->event_fd = swap->event_fd;
	swap->event_fd = before;
	RBX_FETCH_ADD(&swap->times_count, 1);
}

static void event_fd_swap_and_wait(struct tenant *tenant, struct swap *swap)
{
	static uint8_t page[PAGE];
	uint32_t expected = swap->times_count + 1;
	struct rbx_request request = {
		.op = RBX_READ,
		.length_bytes = PAGE,
		.buf = page,
		.complete = event_fd_swap,
		.user = swap,
	};

	tenant_submit(tenant, &request);
	tenant_wait(tenant->ctx, &swap->times_count, expected, false);
}

/* A descriptor that poll() finds broken for ever, as that of an unplugged device: the
 * poller sleeps all the same, and takes what completes. */
static void queue_of_an_unplugged_device_keeps_no_poller_awake(void **state)
{
	static uint8_t bytes[SLOTS * PAGE];
	struct rbx_request requests[SLOTS];
	struct swap swap = { 0 };
	struct tenant tenant;
	uint64_t before;
	int ends[2];

	(void)state;
	tenant_open(&tenant, "polling=event");
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	swap.cq = tenant.ctx->pollers[0]->cqs[0];
	swap.event_fd = ends[1];
	event_fd_swap_and_wait(&tenant, &swap);
	tenant_submit_pages(&tenant, requests, bytes, SLOTS);
	tenant_reap(tenant.ctx, SLOTS);
	before = tenant_stats(tenant.ctx).wakeups;
	usleep(300000);
	assert_true(tenant_stats(tenant.ctx).wakeups - before < 100);
	tenant_submit_pages(&tenant, requests, bytes, SLOTS);
	tenant_reap(tenant.ctx, SLOTS);
	event_fd_swap_and_wait(&tenant, &swap);
	close(ends[1]);
	tenant_close(&tenant);
}

/* One that does not sleep looks only when it polls: who removes a peer waits for that. */
static void poller_that_is_disarmed_has_not_looked(void **state)
{
	struct rbx_context *ctx = tenant_context("pollers=0");
	struct rbx_poller *poller = ctx->pollers[0];
	uint64_t polls_count = poller->round.counters.polls;

	(void)state;
	rbx_poller_disarm(poller); /* it was woken when it was made */
	assert_false(rbx_poller_has_looked(poller, &polls_count));
	rbx_poller_arm(poller);
	assert_true(rbx_poller_has_looked(poller, &polls_count));
	rbx_poller_disarm(poller);
	assert_false(rbx_poller_has_looked(poller, &polls_count));
	assert_int_equal(rbx_close(ctx), 0);
}

/* And not the newest one, if another has room again. */
static void queue_pair_is_of_a_queue_with_room(void **state)
{
	struct rbx_context *ctx = tenant_context("pollers=1");
	struct rbx_poller *poller = ctx->pollers[0];
	uint32_t index, i;

	(void)state;
	for (i = 0; i <= RBX_CQ_QPS; i++) {
		assert_int_equal(rbx_poller_qp_take_locked(poller, &index), 0);
		assert_int_equal(index, i / RBX_CQ_QPS);
	}
	rbx_poller_qp_give_locked(poller, 0);
	assert_int_equal(rbx_poller_qp_take_locked(poller, &index), 0);
	assert_int_equal(index, 0);
	rbx_poller_qp_give_locked(poller, 1);
	for (i = 0; i < RBX_CQ_QPS; i++)
		rbx_poller_qp_give_locked(poller, 0);
	assert_int_equal(rbx_close(ctx), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(poller_that_is_disarmed_has_not_looked),
		cmocka_unit_test(queue_pair_is_of_a_queue_with_room),
		cmocka_unit_test(polling_busy_and_shared_never_sleep),
		cmocka_unit_test(polling_event_arms_for_each_completion),
		cmocka_unit_test(polling_event_batch_arms_for_each_batch),
		cmocka_unit_test(polling_hybrid_arms_after_empty_polls_only),
		cmocka_unit_test(polling_set_changes_a_live_context),
		cmocka_unit_test(polling_set_wakes_a_sleeper),
		cmocka_unit_test(polling_set_from_two_threads_is_orderly),
		cmocka_unit_test(polling_set_refuses_what_cannot_be),
		cmocka_unit_test(polling_set_in_a_callback_is_refused),
		cmocka_unit_test(polling_shared_beside_other_pollers_is_refused),
		cmocka_unit_test(pollers_come_with_their_peers),
		cmocka_unit_test(pollers_of_queue_pairs_share_one_peers_load),
		cmocka_unit_test(pollers_that_cannot_be_had_are_named),
		cmocka_unit_test(queue_of_an_unplugged_device_keeps_no_poller_awake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
