/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* load.c - see load.h. */
#include "sim/scenarios/load.h"

#include <stdlib.h>

#include "sim/random.h"

#define SAMPLE_NS 10000u

struct rbx_request {
	struct rbx_fragment fragment;
	struct rbx_load_thread *thread;
	struct rbx_request *next_free;
	uint64_t submitted_ns;
};

static void ended(struct rbx_fragment *fragment)
{
	struct rbx_request *request =
		RBX_CONTAINER_OF(fragment, struct rbx_request, fragment);
	struct rbx_load_thread *thread = request->thread;

	RBX_ASSERT(fragment->status == 0);
	rbx_histogram_add(thread->latencies,
			  rbx_sim_thread_now() - request->submitted_ns);
	request->next_free = thread->free_first;
	thread->free_first = request;
	thread->in_flight_count--;
	thread->done_count++;
	thread->client->ended_count++;
	if (thread->load->burst_count == 0 || thread->in_flight_count == 0)
		rbx_sim_thread_wake(&thread->thread);
}

static struct rbx_fragment *done(struct rbx_fragment *list)
{
	while (list) {
		struct rbx_fragment *next = rbx_fragment_next(list);

		ended(list);
		list = next;
	}
	return NULL; /* there are no others */
}

/* Submits what the plug holds. */
static void unplug(struct rbx_load_thread *thread)
{
	struct rbx_fragment *first = thread->held_first;

	thread->held_first = NULL;
	rbx_client_submit(thread->client, thread->held_peer, first,
			  thread->held_last, &thread->combining);
}

static void prepare(struct rbx_load_thread *thread, struct rbx_request *request,
		    const struct rbx_target *target)
{
	const struct rbx_client *client = thread->client;
	const struct rbx_mr *memory = client->peers[target->peer].memory;
	struct rbx_fragment *fragment = &request->fragment;

	request->submitted_ns = rbx_sim_thread_now();
	fragment->direction = (uint8_t)target->direction;
	fragment->flags = client->choices.buffers == RBX_CLIENT_COPIED ?
				  0 :
				  RBX_FRAGMENT_HAS_LKEY;
	fragment->retries_count = 0;
	fragment->flushes_count = 0;
	fragment->status = 0;
	fragment->rkey = memory->rkey;
	fragment->remote_addr = (uintptr_t)memory->addr + target->offset_bytes;
}

static void hold_one(struct rbx_load_thread *thread,
		     const struct rbx_target *target)
{
	struct rbx_request *request = thread->free_first;

	thread->free_first = request->next_free;
	thread->in_flight_count++;
	thread->client->submitted_count++;
	prepare(thread, request, target);
	thread->held_peer = target->peer;
	rbx_fragment_append(&thread->held_first, &thread->held_last,
			    &request->fragment, &request->fragment);
}

/* Makes a request and holds it, with its neighbours. */
static void hold(struct rbx_load_thread *thread)
{
	struct rbx_target target = { 0 };

	thread->load->aim(thread, &target);
	do {
		hold_one(thread, &target);
		target.offset_bytes += thread->load->request_bytes;
	} while (target.run_count-- > 0);
}

/* Whether it may make another one, or has to wait. */
static bool may_ask(struct rbx_load_thread *thread)
{
	const struct rbx_load *load = thread->load;

	if (load->burst_count == 0)
		return thread->free_first != NULL;
	if (thread->burst_left != 0)
		return true;
	if (thread->in_flight_count != 0 ||
	    rbx_sim_is_queued(&thread->thread.wakes))
		return false;
	thread->burst_left = load->burst_count;
	if (load->gap_ns == 0)
		return true;
	rbx_sim_thread_wake_at(&thread->thread,
			       rbx_sim_thread_now() + load->gap_ns);
	return false;
}

/* How many it thinks of next; 0: it has to wait. */
static uint32_t may_think_of(struct rbx_load_thread *thread)
{
	const struct rbx_load *load = thread->load;
	uint32_t room = load->depth_count - thread->in_flight_count;

	if (room <= load->run_count)
		return 0;
	room -= load->run_count;
	if (rbx_sim_is_queued(&thread->thread.wakes) || !may_ask(thread))
		return 0;
	if (load->burst_count != 0)
		room = RBX_MIN(room, thread->burst_left);
	return RBX_MIN(room, load->plug_count);
}

/* The think time: from half to one and a half times the average, except for those that were
 * there when the thread began. */
static uint64_t thinks_ns(struct rbx_load_thread *thread)
{
	uint64_t mean_ns =
		(uint64_t)thread->ready_count * thread->load->think_ns;

	if (thread->there_count != 0) {
		thread->there_count -=
			RBX_MIN(thread->ready_count, thread->there_count);
		return 0;
	}
	return rbx_sim_between(&thread->random, mean_ns / 2,
			       mean_ns + mean_ns / 2);
}

static enum rbx_sim_step step(struct rbx_sim_thread *base)
{
	struct rbx_load_thread *thread =
		RBX_CONTAINER_OF(base, struct rbx_load_thread, thread);

	if (thread->combining.channel) {
		rbx_client_combine(thread->client, &thread->combining);
		return RBX_SIM_GO_ON;
	}
	if (thread->ready_count == 0) {
		thread->ready_count = may_think_of(thread);
		if (thread->ready_count == 0)
			return RBX_SIM_SLEEP;
		rbx_sim_spend(thinks_ns(thread));
		return RBX_SIM_GO_ON;
	}
	if (thread->burst_left != 0)
		thread->burst_left -= thread->ready_count;
	for (; thread->ready_count != 0; thread->ready_count--)
		hold(thread);
	unplug(thread);
	return RBX_SIM_GO_ON;
}

static void open_thread(struct rbx_load_thread *thread, uint32_t number,
			struct rbx_client *client, const struct rbx_load *load,
			uint64_t seed)
{
	uint64_t local = (uintptr_t)client->local->addr +
			 (uint64_t)number * load->depth_count *
				 load->request_bytes;

	thread->client = client;
	thread->load = load;
	thread->number = number;
	thread->there_count = load->begins_full ? load->depth_count : 0;
	rbx_sim_random_split(&thread->random, seed, "thread", number);
	thread->requests =
		rbx_sim_take(load->depth_count, sizeof(*thread->requests));
	thread->latencies = rbx_sim_take(1, sizeof(*thread->latencies));
	for (uint32_t i = load->depth_count; i-- > 0;) {
		struct rbx_request *request = &thread->requests[i];

		request->thread = thread;
		request->fragment.done = done;
		request->fragment.local_addr =
			local + (uint64_t)i * load->request_bytes;
		request->fragment.length_bytes = load->request_bytes;
		request->fragment.lkey = client->local->lkey;
		request->next_free = thread->free_first;
		thread->free_first = request;
	}
	thread->thread.step = step;
	rbx_sim_thread_add(&thread->thread);
	rbx_sim_thread_wake(&thread->thread);
}

struct totals {
	uint64_t requests, work_requests, merged, doorbells;
	uint64_t work_hits, work_misses;
	struct rbx_sim_cores_counters cores;
};

static void sum(const struct rbx_client *client,
		const struct rbx_load_thread *threads, uint32_t count,
		struct totals *totals)
{
	const struct rbx_nic_device *nic = rbx_nic_device_of(client->device);

	*totals = (struct totals){ .cores = rbx_sim_cores_counters() };
	for (uint32_t i = 0; i < count; i++)
		totals->requests += threads[i].done_count;
	for (uint32_t i = 0; i < client->choices.peers_count; i++) {
		const struct rbx_channel_counters *counters =
			&client->peers[i].channel.counters;

		totals->work_requests += counters->work_requests;
		totals->merged += counters->merged_requests;
		totals->doorbells += counters->doorbells;
	}
	totals->work_hits = nic->work_cache.hits;
	totals->work_misses = nic->work_cache.misses;
}

static void judge(const struct totals *before, const struct totals *after,
		  uint64_t measured_ns, struct rbx_load_result *result)
{
	uint64_t misses = after->work_misses - before->work_misses;
	uint64_t lookups = misses + after->work_hits - before->work_hits;

	result->requests = after->requests - before->requests;
	result->per_second = result->requests * 1000000 / (measured_ns / 1000);
	result->work_requests = after->work_requests - before->work_requests;
	result->posted = result->work_requests + after->merged - before->merged;
	result->doorbells = after->doorbells - before->doorbells;
	result->work_misses = misses * 1000 / RBX_MAX(lookups, 1u);
	result->interrupts =
		after->cores.interrupts - before->cores.interrupts;
	result->context_switches =
		after->cores.context_switches - before->cores.context_switches;
	result->cpu_percent = (after->cores.busy_ns - before->cores.busy_ns) *
			      100 / measured_ns;
}

/* Samples what is in flight again and again. */
static void sample(const struct rbx_client *client, uint64_t from_ns,
		   uint64_t until_ns, struct rbx_load_result *result)
{
	uint64_t count = 0;

	result->in_flight = result->in_flight_bytes = 0;
	result->in_flight_bytes_peak = 0;
	for (uint64_t at_ns = from_ns; at_ns < until_ns; at_ns += SAMPLE_NS) {
		uint64_t bytes;

		rbx_sim_run_until(at_ns);
		bytes = rbx_window_in_flight_bytes(&client->window);
		result->in_flight += rbx_client_in_flight(client);
		result->in_flight_bytes += bytes;
		result->in_flight_bytes_peak =
			RBX_MAX(result->in_flight_bytes_peak, bytes);
		count++;
	}
	result->in_flight /= RBX_MAX(count, 1u);
	result->in_flight_bytes /= RBX_MAX(count, 1u);
	rbx_sim_run_until(until_ns);
}

static void latencies(struct rbx_load_thread *threads, uint32_t count,
		      struct rbx_load_result *result)
{
	struct rbx_histogram *all = threads[0].latencies;

	for (uint32_t i = 1; i < count; i++)
		rbx_histogram_merge(all, threads[i].latencies);
	result->latency_ns[0] = rbx_histogram_quantile(all, 500);
	result->latency_ns[1] = rbx_histogram_quantile(all, 990);
	/* Little's law. */
	result->latency_ns[2] = result->in_flight * 1000000000u /
				RBX_MAX(result->per_second, 1u);
}

void rbx_load_run(const struct rbx_setting *setting,
		  const struct rbx_client_choices *choices,
		  const struct rbx_load *load, uint64_t measured_ns,
		  struct rbx_load_result *result)
{
	static struct rbx_client client;
	uint32_t count = load->threads_count;
	struct rbx_load_thread *threads =
		rbx_sim_take(count, sizeof(*threads));
	struct rbx_client_choices all = *choices;
	struct totals before, after;

	all.local_bytes = count * load->depth_count * load->request_bytes;
	rbx_client_open(&client, setting->params, &all);
	for (uint32_t i = 0; i < count; i++)
		open_thread(&threads[i], i, &client, load, setting->seed);
	rbx_sim_run_until(measured_ns / 2);
	sum(&client, threads, count, &before);
	for (uint32_t i = 0; i < count; i++)
		rbx_histogram_clear(threads[i].latencies);
	sample(&client, measured_ns / 2, measured_ns / 2 + measured_ns, result);
	sum(&client, threads, count, &after);
	judge(&before, &after, measured_ns, result);
	latencies(threads, count, result);
	rbx_client_close(&client);
	for (uint32_t i = 0; i < count; i++) {
		free(threads[i].requests);
		free(threads[i].latencies);
	}
	free(threads);
}
