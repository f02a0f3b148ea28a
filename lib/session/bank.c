/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bank.c - banks: message buffers and a completion queue for 64 sessions, and the clocks
 * that sessions take from them.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/error.h"
#include "lib/session/set.h"

static int buffers_make(struct rbx_session_set *set, struct rbx_bank *bank)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_mr_init init;
	int err;

	bank->buffers = mmap(NULL, RBX_BANK_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bank->buffers == MAP_FAILED) {
		bank->buffers = NULL;
		return rbx_error(-ENOMEM, "no memory for message buffers");
	}
	init = (struct rbx_mr_init){
		.addr = bank->buffers,
		.length_bytes = RBX_BANK_BYTES,
		.rights = RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};
	err = set->ops->register_memory(set->options.device, &init, 1,
					&bank->mr, error);
	if (err) {
		bank->mr = NULL;
		return rbx_error(err, "cannot register message buffers: %s",
				 error);
	}
	return 0;
}

static int bank_prepare(struct rbx_session_set *set, struct rbx_bank *bank)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	int err = buffers_make(set, bank);

	if (err)
		return err;
	err = set->ops->create_cq(set->options.device, RBX_BANK_CQ_DEPTH,
				  &bank->cq, error);
	if (err) {
		bank->cq = NULL;
		return rbx_error(err, "cannot make a completion queue: %s",
				 error);
	}
	return 0;
}

void rbx_bank_free(struct rbx_session_set *set, struct rbx_bank *bank)
{
	if (bank->cq)
		set->ops->destroy_cq(bank->cq);
	if (bank->mr)
		set->ops->deregister_memory(set->options.device, &bank->mr, 1);
	if (bank->buffers)
		munmap(bank->buffers, RBX_BANK_BYTES);
	free(bank);
}

/* Lowest number first, and no more clocks than sessions are allowed. Monitor entered. */
static void bank_publish(struct rbx_session_set *set, struct rbx_bank *bank)
{
	uint32_t count = RBX_MIN(RBX_BANK_SESSIONS,
				 RBX_SESSIONS_MAX -
					 set->banks_count * RBX_BANK_SESSIONS);

	while (count--) {
		struct rbx_clock *clock = &bank->clocks[count];

		clock->set = set;
		clock->bank = bank;
		clock->number = count;
		clock->due_ns = UINT64_MAX;
		clock->next_free = set->free;
		set->free = clock;
	}
	set->banks[set->banks_count] = bank;
	RBX_STORE_RELEASE(&set->banks_count, set->banks_count + 1);
}

int rbx_bank_add(struct rbx_session_set *set)
{
	struct rbx_bank *bank;
	int err;

	if (RBX_LOAD_ACQUIRE(&set->banks_count) == RBX_BANKS_MAX)
		return rbx_error(-ENOMEM, "more than %u sessions",
				 RBX_SESSIONS_MAX);
	bank = calloc(1, sizeof(*bank));
	if (!bank)
		return rbx_error(-ENOMEM, "no memory for sessions");
	err = bank_prepare(set, bank);
	if (err) {
		rbx_bank_free(set, bank);
		return err;
	}
	rbx_monitor_enter(&set->monitor);
	bank_publish(set, bank);
	rbx_monitor_leave(&set->monitor);
	rbx_session_set_wake(set); /* the control thread has to poll it */
	return 0;
}

/* ---- Clocks ------------------------------------------------------------------------*/

static struct rbx_clock *clock_take(struct rbx_session_set *set,
				    struct rbx_session *session)
{
	struct rbx_clock *clock;

	rbx_monitor_enter(&set->monitor);
	clock = set->free;
	if (clock) {
		set->free = clock->next_free;
		clock->session = session;
	}
	rbx_monitor_leave(&set->monitor);
	return clock;
}

int rbx_clock_make(struct rbx_session *session, struct rbx_clock **clock)
{
	struct rbx_session_set *set = rbx_session_set_of(session->sessions);
	int err = 0;

	pthread_mutex_lock(&set->making);
	*clock = clock_take(set, session);
	if (!*clock) {
		err = rbx_bank_add(set);
		if (!err)
			*clock = clock_take(set, session);
	}
	pthread_mutex_unlock(&set->making);
	return err;
}

void rbx_clock_soon(struct rbx_clock *clock)
{
	struct rbx_session_set *set = clock->set;
	bool is_new;

	rbx_monitor_enter(&set->monitor);
	is_new = clock->due_ns != 0;
	rbx_due_set(&set->due, clock, 0);
	rbx_monitor_leave(&set->monitor);
	if (is_new)
		rbx_session_set_wake(set);
}

/*
 * The control thread finds a session by its clock, under the monitor. It then leaves the
 * monitor to call the session, as callbacks may take long. Meanwhile the clock is the
 * current one. So when the session cannot be found here any more, and its clock is not
 * current, the control thread does not use the session. There is one control thread, and
 * one current clock.
 */
void rbx_clock_free(struct rbx_clock *clock)
{
	struct rbx_session_set *set = clock->set;

	rbx_monitor_enter(&set->monitor);
	clock->session = NULL;
	rbx_due_set(&set->due, clock, UINT64_MAX);
	while (set->current == clock)
		rbx_monitor_wait(&set->monitor);
	clock->next_free = set->free;
	set->free = clock;
	rbx_monitor_leave(&set->monitor);
}
