/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stage.c - see stage.h. The threads stay for the next time: to make them takes long. */
#include "tests/client/stage.h"

#include <pthread.h>

/* Turns until all wait; more are for ever. */
#define TURNS_MAX 10000u
#define NOBODY (-1)

enum actor_state {
	ACTOR_DONE, /* the thread has nothing to do */
	ACTOR_READY,
	ACTOR_WAITS, /* in a monitor */
};

struct actor {
	pthread_t thread;
	pthread_cond_t turn;
	enum actor_state state;
	void (*act)(void *user);
	void *user;
	struct rbx_monitor *monitor; /* in which it waits */
	uint64_t until_ns;
	uint64_t began; /* number of it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static pthread_cond_t turn_of_director = PTHREAD_COND_INITIALIZER;
static struct actor actors[STAGE_ACTORS_MAX];
static uint32_t threads_count;
static int current = NOBODY; /* index of the actor whose turn it is */
static uint64_t began;
static uint64_t now_ns;
static bool takes_last;
static const char *title; /* of the play */

void stage_expect(bool is_so, const char *what, const char *file, int line)
{
	if (is_so)
		return;
	fprintf(stderr, "%s:%d: \"%s\"%s: %s\n", file, line, title,
		takes_last ? ", last first" : "", what);
	abort();
}

/* ---- Turns ----------------------------------------------------------------------*/

/* Of an actor: gives its turn back, and waits for the next one. */
static void turn_end_locked(struct actor *actor)
{
	current = NOBODY;
	pthread_cond_signal(&turn_of_director);
	while (current != actor - actors)
		pthread_cond_wait(&actor->turn, &lock);
}

static void *actor_main(void *argument)
{
	struct actor *actor = argument;

	pthread_mutex_lock(&lock);
	while (current != actor - actors)
		pthread_cond_wait(&actor->turn, &lock);
	for (;;) {
		pthread_mutex_unlock(&lock);
		actor->act(actor->user);
		pthread_mutex_lock(&lock);
		actor->state = ACTOR_DONE;
		turn_end_locked(actor);
	}
	return NULL;
}

static bool may_go_on(const struct actor *actor)
{
	return actor->state == ACTOR_READY ||
	       (actor->state == ACTOR_WAITS && now_ns >= actor->until_ns);
}

static struct actor *next_locked(void)
{
	struct actor *next = NULL;
	uint32_t i;

	for (i = 0; i < threads_count; i++) {
		struct actor *actor = &actors[i];

		if (may_go_on(actor) &&
		    (!next || (actor->began < next->began) != takes_last))
			next = actor;
	}
	return next;
}

static void all_go_on_locked(void)
{
	uint32_t turns = 0;
	struct actor *actor;

	while ((actor = next_locked())) {
		EXPECT(turns++ < TURNS_MAX);
		current = (int)(actor - actors);
		pthread_cond_signal(&actor->turn);
		while (current != NOBODY)
			pthread_cond_wait(&turn_of_director, &lock);
	}
}

/* ---- Direction --------------------------------------------------------------------*/

void stage_open(const char *of_play, bool last_first)
{
	title = of_play;
	takes_last = last_first;
	now_ns = 1000000000;
}

void stage_close(void)
{
	EXPECT(stage_actors_count() == 0);
}

static struct actor *actor_find_locked(void)
{
	struct actor *actor;
	uint32_t i;

	for (i = 0; i < threads_count; i++)
		if (actors[i].state == ACTOR_DONE)
			return &actors[i];
	EXPECT(threads_count < STAGE_ACTORS_MAX);
	actor = &actors[threads_count++];
	pthread_cond_init(&actor->turn, NULL);
	pthread_create(&actor->thread, NULL, actor_main, actor);
	pthread_detach(actor->thread);
	return actor;
}

void stage_act(void (*act)(void *user), void *user)
{
	struct actor *actor;

	pthread_mutex_lock(&lock);
	actor = actor_find_locked();
	actor->act = act;
	actor->user = user;
	actor->began = ++began;
	actor->state = ACTOR_READY;
	all_go_on_locked();
	pthread_mutex_unlock(&lock);
}

uint32_t stage_actors_count(void)
{
	uint32_t count = 0, i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < threads_count; i++)
		count += actors[i].state != ACTOR_DONE;
	pthread_mutex_unlock(&lock);
	return count;
}

void stage_pass_ns(uint64_t ns)
{
	pthread_mutex_lock(&lock);
	now_ns += ns;
	all_go_on_locked();
	pthread_mutex_unlock(&lock);
}

/* ---- The host ------------------------------------------------------------------------*/

void rbx_monitor_init(struct rbx_monitor *monitor)
{
	monitor->is_entered = false;
}

void rbx_monitor_destroy(struct rbx_monitor *monitor)
{
	uint32_t i;

	EXPECT(!monitor->is_entered);
	for (i = 0; i < threads_count; i++)
		EXPECT(actors[i].state == ACTOR_DONE ||
		       actors[i].monitor != monitor);
}

/* Nobody waits within a monitor, so that whoever comes finds it empty. */
void rbx_monitor_enter(struct rbx_monitor *monitor)
{
	EXPECT(!monitor->is_entered);
	monitor->is_entered = true;
}

void rbx_monitor_leave(struct rbx_monitor *monitor)
{
	EXPECT(monitor->is_entered);
	monitor->is_entered = false;
}

void rbx_monitor_wait_until(struct rbx_monitor *monitor, uint64_t at_ns)
{
	struct actor *actor;

	rbx_monitor_leave(monitor);
	pthread_mutex_lock(&lock);
	EXPECT(current != NOBODY);
	actor = &actors[current];
	actor->monitor = monitor;
	actor->until_ns = at_ns;
	actor->state = ACTOR_WAITS;
	turn_end_locked(actor);
	/* It wants the monitor until it is in: nobody may destroy it meanwhile. */
	actor->monitor = NULL;
	pthread_mutex_unlock(&lock);
	rbx_monitor_enter(monitor);
}

void rbx_monitor_wait(struct rbx_monitor *monitor)
{
	rbx_monitor_wait_until(monitor, UINT64_MAX);
}

void rbx_monitor_wake(struct rbx_monitor *monitor)
{
	uint32_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < threads_count; i++)
		if (actors[i].state == ACTOR_WAITS &&
		    actors[i].monitor == monitor)
			actors[i].state = ACTOR_READY;
	pthread_mutex_unlock(&lock);
}

uintptr_t rbx_thread_self(void)
{
	return (uintptr_t)(current + 1);
}

uint64_t rbx_now_ns(void)
{
	return now_ns;
}
