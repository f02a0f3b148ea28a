/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fiber.c - fibers, and the nodes that they belong to.
 *
 * A fiber goes on by its event. A fiber that waits is on a list, or on none, and its event is
 * queued for its deadline. A wake takes it off the list and queues its event for soon. So if
 * its event comes while it is still on a list, the wait has timed out.
 *
 * Thread-local variables belong to the fiber: they are in one block of the module, which is
 * exchanged when another fiber runs than last time.
 */
#include "sim/fiber.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/random.h"
#include "sim/sanitizer.h"
#include "sim/sites.h"
#include "sim/switch.h"
#include "sim/trace.h"

/* From the wake-up of a thread until it runs. */
#define WAKE_NS 1000u
/* The same with a random delay. */
#define WAKE_NS_MAX 20000u
/* How long a preempted fiber stops, usually and rarely. */
#define PREEMPTED_NS_MAX 3000u
#define PREEMPTED_LONG_NS_MAX 300000u

/* The time of a clock when the run begins: no machine has just booted. */
#define BOOT_NS 1000000000000u

enum fiber_state {
	FIBER_WAITING, /* its event or a wake lets it go on */
	FIBER_RUNNING,
	FIBER_ENDED, /* its result waits for rbx_sim_join() */
};

struct rbx_sim_fiber {
	struct rbx_sim_event event;
	struct rbx_sim_stack stack;
	enum fiber_state state;
	uint32_t node;
	uint32_t index; /* in the table */
	bool was_woken;
	struct rbx_sim_waiters *list; /* that it waits on; NULL: none */
	struct rbx_sim_fiber *next, *previous; /* on the list */
	struct rbx_sim_waiters joiners;
	void *(*main)(void *arg);
	void *arg;
	void *result;
	void *stack_memory;
	void *locals; /* its thread-local variables while another one runs */
	void *fake_stack; /* of AddressSanitizer */
};

struct node {
	uint64_t stalled_until_ns;
	int32_t skew; /* of a million */
};

static struct rbx_sim_fiber *fibers[RBX_SIM_FIBERS_MAX];
static uint32_t fibers_count, free_indexes[RBX_SIM_FIBERS_MAX], free_count;
static struct rbx_sim_fiber *running, *locals_owner;
static struct rbx_sim_stack main_stack;
static void *free_stacks[RBX_SIM_FIBERS_MAX];
static uint32_t free_stacks_count;
static struct node nodes[RBX_SIM_NODES_MAX];
static struct rbx_random scheduler;

/* ---- Thread-local variables -------------------------------------------------*/

static _Thread_local char here;
static void *locals;
static size_t locals_bytes;

static int locals_find(struct dl_phdr_info *module, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (int i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &module->dlpi_phdr[i];
		char *begin = module->dlpi_tls_data;

		if (part->p_type != PT_TLS || !begin || &here < begin ||
		    &here >= begin + part->p_memsz)
			continue;
		locals = begin;
		locals_bytes = part->p_memsz;
		return 1;
	}
	return 0;
}

static void locals_exchange(struct rbx_sim_fiber *fiber)
{
	if (locals_owner == fiber)
		return;
	if (locals_owner)
		memcpy(locals_owner->locals, locals, locals_bytes);
	memcpy(locals, fiber->locals, locals_bytes);
	locals_owner = fiber;
}

/* ---- Stacks -----------------------------------------------------------------*/

static void *stack_take(void)
{
	void *memory;

	if (free_stacks_count != 0)
		return free_stacks[--free_stacks_count];
	memory = mmap(NULL, RBX_SIM_STACK_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		abort();
	/* A stack overflow must not reach the next stack. */
	mprotect(memory, 4096, PROT_NONE);
	return memory;
}

static void *stack_usable(void *memory)
{
	return (char *)memory + 4096;
}

#define USABLE_BYTES (RBX_SIM_STACK_BYTES - 4096)

static void fiber_free(struct rbx_sim_fiber *fiber)
{
	rbx_sanitizer_stack_clean(stack_usable(fiber->stack_memory),
				  USABLE_BYTES);
	free_stacks[free_stacks_count++] = fiber->stack_memory;
	if (locals_owner == fiber)
		locals_owner = NULL;
	fibers[fiber->index] = NULL;
	free_indexes[free_count++] = fiber->index;
	free(fiber->locals);
	free(fiber);
}

/* ---- Going on and leaving ---------------------------------------------------*/

struct rbx_sim_fiber *rbx_sim_self(void)
{
	return running;
}

uint32_t rbx_sim_node(void)
{
	return running ? running->node : 0;
}

static void list_remove(struct rbx_sim_fiber *fiber)
{
	struct rbx_sim_waiters *list = fiber->list;

	if (!list)
		return;
	if (fiber->previous)
		fiber->previous->next = fiber->next;
	else
		list->first = fiber->next;
	if (fiber->next)
		fiber->next->previous = fiber->previous;
	else
		list->last = fiber->previous;
	fiber->list = NULL;
	fiber->next = fiber->previous = NULL;
}

static void list_add(struct rbx_sim_waiters *list, struct rbx_sim_fiber *fiber)
{
	fiber->list = list;
	fiber->previous = list->last;
	fiber->next = NULL;
	if (list->last)
		list->last->next = fiber;
	else
		list->first = fiber;
	list->last = fiber;
}

static void go_on(struct rbx_sim_event *event)
{
	struct rbx_sim_fiber *fiber =
		RBX_CONTAINER_OF(event, struct rbx_sim_fiber, event);
	uint64_t stalled_until_ns = nodes[fiber->node].stalled_until_ns;
	void *fake_stack;

	if (stalled_until_ns > rbx_sim_now()) {
		rbx_sim_at(event, stalled_until_ns);
		return;
	}
	RBX_ASSERT(!running && fiber->state == FIBER_WAITING);
	list_remove(fiber);
	locals_exchange(fiber);
	fiber->state = FIBER_RUNNING;
	running = fiber;
	rbx_sanitizer_leave(&fake_stack, stack_usable(fiber->stack_memory),
			    USABLE_BYTES);
	rbx_sim_stack_switch(&main_stack, &fiber->stack);
	rbx_sanitizer_arrive(fake_stack);
	running = NULL;
}

/* Back to the main stack, until the event of the fiber runs. */
static void leave(struct rbx_sim_fiber *fiber, enum fiber_state state)
{
	fiber->state = state;
	rbx_sanitizer_leave_to_main(state == FIBER_ENDED ? NULL :
							   &fiber->fake_stack);
	rbx_sim_stack_switch(&fiber->stack, &main_stack);
	rbx_sanitizer_arrive(fiber->fake_stack);
}

static void fiber_main(void *arg)
{
	struct rbx_sim_fiber *fiber = arg;

	rbx_sanitizer_arrive_first();
	fiber->result = fiber->main(fiber->arg);
	rbx_sim_wake_all(&fiber->joiners);
	leave(fiber, FIBER_ENDED);
}

struct rbx_sim_fiber *rbx_sim_spawn(uint32_t node, void *(*main)(void *arg),
				    void *arg)
{
	struct rbx_sim_fiber *fiber = calloc(1, sizeof(*fiber));

	RBX_ASSERT(node < RBX_SIM_NODES_MAX);
	RBX_ASSERT(free_count != 0 || fibers_count < RBX_SIM_FIBERS_MAX);
	if (!fiber)
		abort();
	fiber->locals = calloc(1, locals_bytes);
	if (!fiber->locals)
		abort();
	fiber->index = free_count ? free_indexes[--free_count] : fibers_count++;
	fibers[fiber->index] = fiber;
	fiber->event.run = go_on;
	fiber->node = node;
	fiber->main = main;
	fiber->arg = arg;
	fiber->stack_memory = stack_take();
	rbx_sim_stack_prepare(&fiber->stack, stack_usable(fiber->stack_memory),
			      USABLE_BYTES, fiber_main, fiber);
	rbx_sim_wake(fiber);
	return fiber;
}

void *rbx_sim_join(struct rbx_sim_fiber *fiber)
{
	void *result;

	while (fiber->state != FIBER_ENDED)
		(void)rbx_sim_wait(&fiber->joiners, RBX_SIM_FOREVER);
	result = fiber->result;
	fiber_free(fiber);
	return result;
}

/* ---- Waiting ----------------------------------------------------------------*/

bool rbx_sim_wait(struct rbx_sim_waiters *waiters, uint64_t until_ns)
{
	struct rbx_sim_fiber *fiber = running;

	RBX_ASSERT(fiber);
	fiber->was_woken = false;
	if (waiters)
		list_add(waiters, fiber);
	if (until_ns != RBX_SIM_FOREVER)
		rbx_sim_at(&fiber->event, until_ns);
	leave(fiber, FIBER_WAITING);
	return fiber->was_woken;
}

bool rbx_sim_pause(uint64_t until_ns)
{
	return rbx_sim_wait(NULL, until_ns);
}

void rbx_sim_sleep(uint64_t delay_ns)
{
	(void)rbx_sim_pause(rbx_sim_now() + delay_ns);
}

static uint64_t wake_ns(void)
{
	return rbx_sim_site_is_on(RBX_SIM_SITE_preempt) ?
		       rbx_sim_between(&scheduler, 0, WAKE_NS_MAX) :
		       WAKE_NS;
}

void rbx_sim_wake(struct rbx_sim_fiber *fiber)
{
	if (fiber->state != FIBER_WAITING || fiber->was_woken)
		return;
	list_remove(fiber);
	fiber->was_woken = true;
	rbx_sim_after(&fiber->event, wake_ns());
}

void rbx_sim_wake_one(struct rbx_sim_waiters *waiters)
{
	if (waiters->first)
		rbx_sim_wake(waiters->first);
}

void rbx_sim_wake_all(struct rbx_sim_waiters *waiters)
{
	while (waiters->first)
		rbx_sim_wake(waiters->first);
}

/* ---- Preemption -------------------------------------------------------------*/

uint32_t rbx_sim_preempt_left = UINT32_MAX;

/* How many atomics until the next preemption: on average as many as the chance says. */
static uint32_t preempt_distance(void)
{
	uint32_t chance = rbx_sim_site_chance(RBX_SIM_SITE_preempt);

	if (!rbx_sim_site_is_on(RBX_SIM_SITE_preempt))
		return UINT32_MAX;
	return 1 + rbx_random_below(&scheduler, 2 * RBX_SIM_MILLION / chance);
}

void rbx_sim_preempt(void)
{
	uint64_t most_ns = rbx_random_below(&scheduler, 16) ?
				   PREEMPTED_NS_MAX :
				   PREEMPTED_LONG_NS_MAX;

	rbx_sim_preempt_left = preempt_distance();
	if (!running || rbx_sim_preempt_left == UINT32_MAX)
		return;
	rbx_sim_site_struck(RBX_SIM_SITE_preempt);
	rbx_sim_sleep(rbx_sim_between(&scheduler, 0, most_ns));
}

/* ---- Nodes ------------------------------------------------------------------*/

void rbx_sim_node_stop(uint32_t node)
{
	RBX_ASSERT(!running || running->node != node);
	/* One may wait for the end of another, in a list of that one: all leave their lists. */
	for (uint32_t i = 0; i < fibers_count; i++) {
		if (!fibers[i] || fibers[i]->node != node)
			continue;
		rbx_sim_cancel(&fibers[i]->event);
		list_remove(fibers[i]);
	}
	for (uint32_t i = 0; i < fibers_count; i++)
		if (fibers[i] && fibers[i]->node == node)
			fiber_free(fibers[i]);
}

void rbx_sim_node_stall(uint32_t node, uint64_t until_ns)
{
	nodes[node].stalled_until_ns = until_ns;
}

void rbx_sim_node_skew(uint32_t node, int32_t of_a_million)
{
	nodes[node].skew = of_a_million;
}

/* The drift is applied in steps of a millisecond, which is enough. */
uint64_t rbx_sim_node_clock(uint32_t node)
{
	int64_t now_ns = (int64_t)rbx_sim_now();

	return BOOT_NS + (uint64_t)(now_ns + now_ns / (int64_t)RBX_SIM_MILLION *
						     nodes[node].skew);
}

uint64_t rbx_sim_node_time(uint32_t node, uint64_t clock_ns)
{
	uint64_t rate = (uint64_t)((int64_t)RBX_SIM_MILLION + nodes[node].skew);
	uint64_t skewed_ns = clock_ns > BOOT_NS ? clock_ns - BOOT_NS : 0;
	uint64_t at_ns;

	if (nodes[node].skew == 0)
		return skewed_ns;
	at_ns = skewed_ns / rate * RBX_SIM_MILLION +
		skewed_ns % rate * RBX_SIM_MILLION / rate;
	/* Not too early: a step of the clock is RBX_SIM_SKEW_MAX at most. */
	return at_ns + RBX_SIM_SKEW_MAX;
}

void rbx_sim_fibers_init(uint64_t seed)
{
	static bool is_found;

	if (!is_found)
		is_found = dl_iterate_phdr(locals_find, NULL) != 0;
	if (!is_found)
		abort();
	memset(nodes, 0, sizeof(nodes));
	rbx_sim_random_split(&scheduler, seed, "scheduler", 0);
	rbx_sim_preempt_left = preempt_distance();
}
