/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cores.c - see cores.h. */
#include "sim/scenarios/cores.h"

#include "sim/nic/params.h"

#define EVENTS_MAX 4096u
#define FIRST_FD 0x20000000

enum state {
	ASLEEP,
	READY, /* waits for a core */
	RUNNING,
};

struct core {
	struct rbx_sim_event event; /* the end of its step, or of its switch */
	struct rbx_sim_thread *thread; /* NULL: idle */
	bool stepped; /* it has done a step, and `next` says what comes then */
	enum rbx_sim_step next;
	uint64_t slice_ends_ns;
	bool preempt;
};

struct event_fd {
	bool raised;
	struct rbx_sim_thread *wakes;
};

static const struct rbx_nic_params *params;
static struct core cores[RBX_SIM_CORES_MAX];
static struct rbx_sim_thread *threads[RBX_SIM_CORES_THREADS_MAX];
static uint32_t thread_count, ready_count;
static struct event_fd fds[EVENTS_MAX];
static uint32_t fd_count;
static uint32_t node_;
static bool in_step;
static uint64_t spent_ns; /* in the step that runs */
static struct rbx_sim_cores_counters counters;

static void core_event(struct rbx_sim_event *event);
static void wakes_event(struct rbx_sim_event *event);

void rbx_sim_cores_begin(const struct rbx_nic_params *nic_params)
{
	params = nic_params;
	thread_count = ready_count = fd_count = 0;
	spent_ns = 0;
	counters = (struct rbx_sim_cores_counters){ 0 };
	for (uint32_t i = 0; i < params->cores; i++)
		cores[i] = (struct core){ .event = { .run = core_event } };
}

void rbx_sim_thread_add(struct rbx_sim_thread *thread)
{
	RBX_ASSERT(thread_count < RBX_SIM_CORES_THREADS_MAX);
	thread->number = thread_count;
	thread->state = ASLEEP;
	thread->had_ns = thread->used_ns = 0;
	thread->woken = false;
	thread->wakes = (struct rbx_sim_event){ .run = wakes_event };
	threads[thread_count++] = thread;
}

/* Of the threads that can run, the one with the least time; of equal ones the first. */
static struct rbx_sim_thread *least_ready(void)
{
	struct rbx_sim_thread *least = NULL;

	for (uint32_t i = 0; ready_count != 0 && i < thread_count; i++) {
		if (threads[i]->state == READY &&
		    (!least || threads[i]->had_ns < least->had_ns))
			least = threads[i];
	}
	return least;
}

static void run_thread(struct core *core, struct rbx_sim_thread *thread)
{
	core->thread = thread;
	core->stepped = false;
	core->preempt = false;
	if (thread->state == READY)
		ready_count--;
	thread->state = RUNNING;
	core->slice_ends_ns = rbx_sim_now() + params->context_switch_ns +
			      params->timeslice_ns;
	counters.context_switches++;
	counters.busy_ns += params->context_switch_ns;
	rbx_sim_after(&core->event, params->context_switch_ns);
}

static void make_ready(struct rbx_sim_thread *thread)
{
	thread->state = READY;
	ready_count++;
}

/* The next thread, or none. */
static void pick(struct core *core)
{
	struct rbx_sim_thread *thread = least_ready();

	core->thread = NULL;
	if (thread)
		run_thread(core, thread);
}

static void step(struct core *core)
{
	struct rbx_sim_thread *thread = core->thread;

	thread->woken = false;
	in_step = true;
	core->next = thread->step(thread);
	in_step = false;
	core->stepped = true;
	spent_ns = RBX_MAX(spent_ns, 1u);
	thread->had_ns += spent_ns;
	thread->used_ns += spent_ns;
	counters.busy_ns += spent_ns;
	rbx_sim_after(&core->event, spent_ns);
	spent_ns = 0;
}

static void core_event(struct rbx_sim_event *event)
{
	struct core *core = RBX_CONTAINER_OF(event, struct core, event);
	struct rbx_sim_thread *thread = core->thread;

	if (core->stepped && core->next == RBX_SIM_SLEEP && !thread->woken) {
		thread->state = ASLEEP;
		pick(core);
		return;
	}
	if (ready_count != 0 &&
	    (core->preempt || rbx_sim_now() >= core->slice_ends_ns)) {
		make_ready(thread);
		pick(core);
		return;
	}
	step(core);
}

/* When it wakes, its count is at most a slice below that of the running thread: sleep is not
 * saved up. */
static void forget_sleep(struct rbx_sim_thread *thread)
{
	uint64_t least_ns = UINT64_MAX;

	for (uint32_t i = 0; i < params->cores; i++) {
		if (cores[i].thread)
			least_ns = RBX_MIN(least_ns, cores[i].thread->had_ns);
	}
	if (least_ns != UINT64_MAX && least_ns > params->timeslice_ns)
		thread->had_ns = RBX_MAX(thread->had_ns,
					 least_ns - params->timeslice_ns);
}

/* An idle core, or else the one whose thread had the most time, if that is enough more. */
static void find_core(struct rbx_sim_thread *thread)
{
	struct core *most = NULL;

	for (uint32_t i = 0; i < params->cores; i++) {
		struct core *core = &cores[(thread->number + i) %
					   params->cores];

		if (!core->thread) {
			run_thread(core, thread);
			return;
		}
		if (!core->preempt &&
		    (!most || core->thread->had_ns > most->thread->had_ns))
			most = core;
	}
	if (most && most->thread->had_ns > thread->had_ns + params->preempt_ns)
		most->preempt = true;
}

static void wakes_event(struct rbx_sim_event *event)
{
	struct rbx_sim_thread *thread =
		RBX_CONTAINER_OF(event, struct rbx_sim_thread, wakes);

	rbx_sim_thread_wake(thread);
}

void rbx_sim_thread_wake(struct rbx_sim_thread *thread)
{
	thread->woken = true;
	if (thread->state != ASLEEP)
		return;
	forget_sleep(thread);
	make_ready(thread);
	find_core(thread);
}

void rbx_sim_thread_wake_at(struct rbx_sim_thread *thread, uint64_t at_ns)
{
	rbx_sim_at(&thread->wakes, at_ns);
}

void rbx_sim_spend(uint64_t time_ns)
{
	if (in_step)
		spent_ns += time_ns;
}

uint64_t rbx_sim_thread_now(void)
{
	return rbx_sim_now() + spent_ns;
}

void rbx_sim_event_wakes(int fd, struct rbx_sim_thread *thread)
{
	fds[fd - FIRST_FD].wakes = thread;
}

bool rbx_sim_event_is_raised(int fd)
{
	return fds[fd - FIRST_FD].raised;
}

static void stop(struct rbx_sim_event *event)
{
	(void)event;
}

void rbx_sim_run_until(uint64_t until_ns)
{
	struct rbx_sim_event then = { .run = stop };

	rbx_sim_at(&then, until_ns);
	while (rbx_sim_is_queued(&then))
		rbx_sim_step();
}

struct rbx_sim_cores_counters rbx_sim_cores_counters(void)
{
	return counters;
}

void rbx_sim_on_node(uint32_t node)
{
	node_ = node;
}

static uint32_t host_node(void)
{
	return node_;
}

static int open_event(void)
{
	RBX_ASSERT(fd_count < EVENTS_MAX);
	fds[fd_count] = (struct event_fd){ 0 };
	return FIRST_FD + (int)fd_count++;
}

static void close_event(int fd)
{
	fds[fd - FIRST_FD].wakes = NULL;
}

/* The interrupt delays the core of the descriptor. */
static void interrupt(int fd)
{
	struct core *core = &cores[(uint32_t)(fd - FIRST_FD) % params->cores];

	counters.interrupts++;
	counters.busy_ns += params->interrupt_ns;
	if (rbx_sim_is_queued(&core->event))
		rbx_sim_at(&core->event,
			   core->event.at_ns + params->interrupt_ns);
}

static void raise_event(int fd)
{
	struct event_fd *event = &fds[fd - FIRST_FD];

	event->raised = true;
	if (!event->wakes)
		return;
	interrupt(fd);
	if (event->wakes->state == ASLEEP)
		rbx_sim_thread_wake_at(event->wakes,
				       rbx_sim_now() + params->interrupt_ns +
					       params->wake_ns);
	else
		rbx_sim_thread_wake(event->wakes);
}

static void lower_event(int fd)
{
	fds[fd - FIRST_FD].raised = false;
}

/* Connections exist when a scenario begins; see wires.h. */
static bool wait_event(int fd, uint64_t until_ns)
{
	(void)fd;
	(void)until_ns;
	RBX_ASSERT(false);
	return false;
}

const struct rbx_nic_host rbx_sim_cores_host = {
	.node = host_node,
	.now = rbx_sim_thread_now,
	.spend = rbx_sim_spend,
	.open_event = open_event,
	.close_event = close_event,
	.raise_event = raise_event,
	.lower_event = lower_event,
	.wait_event = wait_event,
};
