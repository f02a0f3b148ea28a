/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * control_thread.c - the control thread of a server.
 *
 * A pass of its loop takes connection requests, takes completions, takes the results of
 * the workers, and does what is due. Each part is bounded and none waits for memory, so
 * no peer can keep the others waiting. Messages come before leases: a server that was
 * stopped for a while reads its clients' messages before it ends their leases. After a
 * pass that found nothing, the thread arms the completion queue and looks once more. Then
 * it releases the lock and sleeps until a descriptor or the clock wakes it.
 */
#include <poll.h>
#include <unistd.h>

#include "server/state.h"
#include "wire/attach.h"

#define SLEEP_MS_MAX 1000 /* to look at the host's memory */
#define SLEEP_MS_MIN 20 /* if something is due again and again */
/* If untrusted clients have a deadline, or clients wait for a slab. */
#define SLEEP_MS_DEADLINES 100

static void request_take(struct rbx_server *s, struct rbx_conn_request *request,
			 uint64_t now_ns)
{
	struct rbx_wire_attach attach;
	int err = rbx_wire_attach_decode(request->private_data,
					 request->private_data_bytes, &attach);

	if (request->unfit) {
		s->refused_auth++;
		rbx_log_hostile(&s->hostile, request->peer_name, request->unfit, now_ns);
		s->fabric.ops->reject(request, NULL, 0);
	} else if (err) {
		s->refused_malformed++;
		rbx_request_refuse(s, request,
				   err == -EPROTONOSUPPORT ?
					   RBX_REASON_VERSION :
					   RBX_REASON_MALFORMED);
	} else if (attach.kind == RBX_WIRE_ATTACH_DATA) {
		rbx_data_qp_accept(s, request, &attach);
	} else {
		rbx_connection_accept(s, request,
				      rbx_client_find(s, attach.session_id) ?
					      attach.session_id :
					      0,
				      now_ns);
	}
}

static bool requests_take(struct rbx_server *s, uint64_t now_ns)
{
	struct rbx_conn_request *request;
	int taken;

	for (taken = 0; taken < RBX_SERVER_ACCEPTS_PER_TURN; taken++) {
		if (s->fabric.ops->get_request(s->listener, &request))
			break;
		request_take(s, request, now_ns);
	}
	return taken > 0;
}

/* Those that the fabric closed because too many connections had said nothing. Nobody knows
 * who they were, but the network of whoever reads the log does. */
static void crowd_note(struct rbx_server *s, uint64_t now_ns)
{
	uint32_t count = atomic_load_explicit(&s->listener->crowded_out_count,
					      memory_order_relaxed);

	if (count == s->crowded_out_count)
		return;
	s->refused[RBX_REASON_TOO_MANY] += count - s->crowded_out_count;
	s->crowded_out_count = count;
	rbx_log_hostile(&s->hostile, s->listener->address,
			"connections that say nothing, too many at a time", now_ns);
}

static bool completions_take(struct rbx_server *s, uint64_t now_ns)
{
	struct rbx_wc wcs[RBX_POLL_BATCH];
	bool any = false;
	int polls, i, n;

	for (polls = 0; polls < RBX_SERVER_POLLS_PER_TURN; polls++) {
		n = s->fabric.ops->poll(s->cq, wcs, RBX_POLL_BATCH);
		for (i = 0; i < n; i++) {
			struct rbx_wr_name name =
				rbx_wr_name_unpack(wcs[i].wr_id);

			if (name.kind == RBX_WR_DATA_RECV)
				rbx_data_qp_completed(s, &wcs[i]);
			else
				rbx_connection_completed(s, &wcs[i], now_ns);
		}
		if (n <= 0)
			break;
		any = true;
	}
	return any;
}

/* Returns true if there may be more to do at once. */
static bool pass(struct rbx_server *s)
{
	uint64_t now_ns = rbx_now_ns();
	bool any = requests_take(s, now_ns);

	any |= completions_take(s, now_ns);
	crowd_note(s, now_ns);
	any |= rbx_workers_serve(s);
	rbx_half_open_tick(s, now_ns);
	rbx_pressure_tick(s, now_ns);
	rbx_volumes_tick(s, now_ns);
	return rbx_lender_serve(s, now_ns) || any;
}

static int sleep_ms(struct rbx_server *s)
{
	uint64_t now_ns = rbx_now_ns();
	uint64_t deadline_ns = rbx_lender_deadline_ns(s->lender, now_ns);
	uint64_t ms = SLEEP_MS_MAX;

	if (deadline_ns <= now_ns)
		ms = SLEEP_MS_MIN;
	else if (deadline_ns - now_ns < ms * 1000000)
		ms = RBX_MAX((deadline_ns - now_ns) / 1000000 + 1,
			     SLEEP_MS_MIN);
	if (s->untrusted.count || s->resumers.count || s->waiting_first)
		ms = RBX_MIN(ms, SLEEP_MS_DEADLINES);
	return (int)ms;
}

static void nap(struct rbx_server *s)
{
	struct pollfd fds[] = {
		{ .fd = s->listener->event_fd, .events = POLLIN },
		{ .fd = s->cq->event_fd, .events = POLLIN },
		{ .fd = s->wake_fd, .events = POLLIN },
	};
	int timeout_ms = sleep_ms(s);
	uint64_t wakes;
	ssize_t ignored;

	pthread_mutex_unlock(&s->lock);
	poll(fds, sizeof(fds) / sizeof(fds[0]), timeout_ms);
	pthread_mutex_lock(&s->lock);
	if (fds[1].revents)
		s->fabric.ops->consume_events(s->cq);
	if (fds[2].revents) {
		ignored = read(s->wake_fd, &wakes, sizeof(wakes));
		(void)ignored;
	}
}

void rbx_control_thread_wake(struct rbx_server *s)
{
	const uint64_t one = 1;
	ssize_t ignored = write(s->wake_fd, &one, sizeof(one));

	(void)ignored;
}

void *rbx_control_thread(void *server)
{
	struct rbx_server *s = server;

	pthread_mutex_lock(&s->lock);
	while (!s->stopping) {
		if (pass(s))
			continue;
		s->fabric.ops->arm(s->cq);
		if (!pass(s) && !s->stopping)
			nap(s);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}
