/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cores_test.c - threads that share cores, against times reckoned by hand: on the
 * round NIC of nic_world.c a context switch takes 100, an interrupt 200, waking 300,
 * a timeslice 10,000, and who wakes preempts who had 1,000 more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/nic/device.h"
#include "sim/scenarios/cores.h"
#include "tests/sim/nic_world.h"

struct worker {
	struct rbx_sim_thread thread;
	uint64_t step_ns;
	uint32_t steps_left; /* then it sleeps */
	uint64_t first_ns, last_ns; /* when its steps began */
	uint32_t steps;
};

static struct rbx_nic_params *params;

static enum rbx_sim_step work(struct rbx_sim_thread *thread)
{
	struct worker *worker = RBX_CONTAINER_OF(thread, struct worker, thread);

	if (worker->steps_left == 0)
		return RBX_SIM_SLEEP;
	worker->steps_left--;
	worker->last_ns = rbx_sim_now();
	if (worker->steps++ == 0)
		worker->first_ns = rbx_sim_now();
	rbx_sim_spend(worker->step_ns);
	return worker->steps_left ? RBX_SIM_GO_ON : RBX_SIM_SLEEP;
}

static void begin(uint32_t cores)
{
	params = nic_world_begin(NULL);
	params->cores = cores;
	rbx_sim_cores_begin(params);
}

static void start(struct worker *worker, uint64_t step_ns, uint32_t steps)
{
	*worker = (struct worker){
		.thread = { .step = work },
		.step_ns = step_ns,
		.steps_left = steps,
	};
	rbx_sim_thread_add(&worker->thread);
	rbx_sim_thread_wake(&worker->thread);
}

/* Two threads, two cores: side by side, from the switch at 100 on. */
static void threads_with_a_core_each_run_at_once(void **state)
{
	struct worker workers[2];

	(void)state;
	begin(2);
	start(&workers[0], 500, 3);
	start(&workers[1], 500, 3);
	rbx_sim_run_until(100000);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(workers[i].first_ns, 100);
		assert_int_equal(workers[i].last_ns, 1100);
		assert_int_equal(workers[i].thread.used_ns, 1500);
	}
	assert_int_equal(rbx_sim_cores_counters().busy_ns, 2 * 1600);
	assert_int_equal(rbx_sim_cores_counters().context_switches, 2);
}

/* One core: the second begins when the first sleeps, at 1,600, and a switch. */
static void second_thread_waits_for_the_core(void **state)
{
	struct worker workers[2];

	(void)state;
	begin(1);
	start(&workers[0], 500, 3);
	start(&workers[1], 500, 3);
	rbx_sim_run_until(100000);
	assert_int_equal(workers[1].first_ns, 1700);
	assert_int_equal(workers[1].last_ns, 2700);
}

/* Both want the core for long: the first has it for its slice, until 10,100, and a
 * switch later the second. Then they take turns. */
static void timeslice_ends_a_turn(void **state)
{
	struct worker workers[2];

	(void)state;
	begin(1);
	start(&workers[0], 1000, 40);
	start(&workers[1], 1000, 40);
	rbx_sim_run_until(200000);
	assert_int_equal(workers[1].first_ns, 10200);
	assert_int_equal(workers[0].steps, 40);
	assert_int_equal(workers[1].steps, 40);
	/* 80 steps and 8 turns. */
	assert_int_equal(rbx_sim_cores_counters().busy_ns, 80000 + 8 * 100);
}

/* Who has slept does not wait for the end of a slice. The step under way at 5,000
 * ends at 5,100. */
static void sleeper_preempts_who_had_more(void **state)
{
	struct worker hog, sleeper;

	(void)state;
	begin(1);
	start(&hog, 1000, 100);
	rbx_sim_run_until(5000);
	start(&sleeper, 500, 1);
	rbx_sim_run_until(200000);
	assert_int_equal(sleeper.first_ns, 5100 + 100);
	assert_int_equal(hog.steps, 100);
}

/* A thread that is woken while it runs does not go to sleep. */
static enum rbx_sim_step sleep_once(struct rbx_sim_thread *thread)
{
	struct worker *worker = RBX_CONTAINER_OF(thread, struct worker, thread);

	rbx_sim_spend(1000);
	worker->steps++;
	return RBX_SIM_SLEEP;
}

static void wake_while_running_is_not_lost(void **state)
{
	struct worker worker;

	(void)state;
	begin(1);
	start(&worker, 1000, 1);
	worker.thread.step = sleep_once;
	rbx_sim_run_until(500); /* in the midst of its step */
	rbx_sim_thread_wake(&worker.thread);
	rbx_sim_run_until(10000);
	assert_int_equal(worker.steps, 2);
}

/* The interrupt comes at 50,000; 200 later it has been handled, 300 later the thread
 * may run, 100 later it does. */
static void interrupt_wakes_its_thread(void **state)
{
	const struct rbx_nic_host *host = &rbx_sim_cores_host;
	struct worker worker;
	int fd;

	(void)state;
	begin(1);
	start(&worker, 500, 0);
	fd = host->open_event();
	rbx_sim_event_wakes(fd, &worker.thread);
	rbx_sim_run_until(50000);
	worker.steps_left = 1;
	host->raise_event(fd);
	assert_true(rbx_sim_event_is_raised(fd));
	rbx_sim_run_until(60000);
	assert_int_equal(worker.first_ns, 50600);
	assert_int_equal(rbx_sim_cores_counters().interrupts, 1);
}

/* The core of the descriptor is held up for 200. */
static void interrupt_holds_up_its_core(void **state)
{
	const struct rbx_nic_host *host = &rbx_sim_cores_host;
	struct worker worker, other;
	int fd;

	(void)state;
	begin(1);
	start(&worker, 1000, 3);
	start(&other, 1, 0);
	fd = host->open_event();
	rbx_sim_event_wakes(fd, &other.thread);
	rbx_sim_run_until(1500);
	host->raise_event(fd);
	rbx_sim_run_until(100000);
	assert_int_equal(worker.last_ns, 2100 + 200);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_with_a_core_each_run_at_once),
		cmocka_unit_test(second_thread_waits_for_the_core),
		cmocka_unit_test(timeslice_ends_a_turn),
		cmocka_unit_test(sleeper_preempts_who_had_more),
		cmocka_unit_test(wake_while_running_is_not_lost),
		cmocka_unit_test(interrupt_wakes_its_thread),
		cmocka_unit_test(interrupt_holds_up_its_core),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
