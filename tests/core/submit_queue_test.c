/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * submit_queue_test.c - order, election, and that nothing is lost when the
 * combiner leaves while others push.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/submit_queue.h"

static void queue_first_push_elects_combiner(void **state)
{
	struct rbx_submit_queue queue;
	struct rbx_node a, b;

	(void)state;
	rbx_submit_queue_init(&queue);
	assert_true(rbx_submit_queue_push(&queue, &a, &a));
	assert_false(rbx_submit_queue_push(&queue, &b, &b));
}

static void queue_take_returns_order_of_pushes(void **state)
{
	struct rbx_submit_queue queue;
	struct rbx_node nodes[5];

	(void)state;
	rbx_submit_queue_init(&queue);
	for (int i = 0; i < 5; i++)
		nodes[i].next = i < 4 ? &nodes[i + 1] : NULL;
	rbx_submit_queue_push(&queue, &nodes[0], &nodes[0]);
	nodes[1].next = &nodes[2];
	rbx_submit_queue_push(&queue, &nodes[1], &nodes[3]);
	rbx_submit_queue_push(&queue, &nodes[4], &nodes[4]);
	struct rbx_node *node = rbx_submit_queue_take(&queue);
	for (int i = 0; i < 5; i++, node = node->next)
		assert_ptr_equal(node, &nodes[i]);
	assert_null(node);
	assert_false(rbx_submit_queue_pushed(&queue));
}

static void queue_leave_fails_after_push(void **state)
{
	struct rbx_submit_queue queue;
	struct rbx_node a, b;

	(void)state;
	rbx_submit_queue_init(&queue);
	rbx_submit_queue_push(&queue, &a, &a);
	rbx_submit_queue_take(&queue);
	assert_false(rbx_submit_queue_push(&queue, &b, &b));
	assert_false(rbx_submit_queue_leave(&queue));
	assert_ptr_equal(rbx_submit_queue_take(&queue), &b);
	assert_true(rbx_submit_queue_leave(&queue));
	assert_true(rbx_submit_queue_push(&queue, &a, &a));
}

static void queue_claim_succeeds_only_when_idle(void **state)
{
	struct rbx_submit_queue queue;
	struct rbx_node a;

	(void)state;
	rbx_submit_queue_init(&queue);
	assert_true(rbx_submit_queue_claim(&queue));
	assert_false(rbx_submit_queue_claim(&queue));
	assert_false(rbx_submit_queue_push(&queue, &a, &a));
	assert_ptr_equal(rbx_submit_queue_take(&queue), &a);
	assert_true(rbx_submit_queue_leave(&queue));
	assert_true(rbx_submit_queue_claim(&queue));
}

/* Threads push numbered nodes; whoever is elected combines. */
#define THREADS 4
#define NODES 20000

struct numbered {
	struct rbx_node node;
	int thread;
	int number;
};

struct race {
	struct rbx_submit_queue queue;
	int combiners; /* atomic: must never exceed 1 */
	int next[THREADS]; /* the combiner's: next number due of each thread */
	int taken; /* the combiner's */
	struct numbered *nodes[THREADS];
};

struct racer {
	struct race *race;
	int thread;
};

static void combine(struct race *race)
{
	struct rbx_node *node;

	do {
		assert_int_equal(RBX_FETCH_ADD(&race->combiners, 1), 0);
		node = rbx_submit_queue_take(&race->queue);
		for (; node; node = node->next) {
			struct numbered *numbered =
				RBX_CONTAINER_OF(node, struct numbered, node);

			assert_int_equal(numbered->number,
					 race->next[numbered->thread]++);
			race->taken++;
		}
		RBX_FETCH_ADD(&race->combiners, -1);
	} while (!rbx_submit_queue_leave(&race->queue));
}

static void *push_all(void *arg)
{
	struct racer *racer = arg;
	struct race *race = racer->race;

	for (int i = 0; i < NODES; i++) {
		struct numbered *numbered = &race->nodes[racer->thread][i];

		if (rbx_submit_queue_push(&race->queue, &numbered->node,
					  &numbered->node))
			combine(race);
	}
	return NULL;
}

static void queue_many_threads_lose_and_double_nothing(void **state)
{
	static struct race race;
	struct racer racers[THREADS];
	pthread_t threads[THREADS];

	(void)state;
	rbx_submit_queue_init(&race.queue);
	for (int t = 0; t < THREADS; t++) {
		race.nodes[t] = calloc(NODES, sizeof(struct numbered));
		for (int i = 0; i < NODES; i++) {
			race.nodes[t][i].thread = t;
			race.nodes[t][i].number = i;
		}
		racers[t] = (struct racer){ &race, t };
	}
	for (int t = 0; t < THREADS; t++)
		pthread_create(&threads[t], NULL, push_all, &racers[t]);
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	assert_int_equal(race.taken, THREADS * NODES);
	assert_true(rbx_submit_queue_claim(&race.queue));
	for (int t = 0; t < THREADS; t++)
		free(race.nodes[t]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_first_push_elects_combiner),
		cmocka_unit_test(queue_take_returns_order_of_pushes),
		cmocka_unit_test(queue_leave_fails_after_push),
		cmocka_unit_test(queue_claim_succeeds_only_when_idle),
		cmocka_unit_test(queue_many_threads_lose_and_double_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
