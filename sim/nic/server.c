/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server.c - see server.h.
 *
 * The event is rounded up to the nanosecond, but the service time is not: the next service
 * begins when the last one ended, if its job was there by then.
 */
#include "sim/nic/server.h"

static void end_service(struct rbx_sim_event *event);

void rbx_nic_server_init(struct rbx_nic_server *server)
{
	*server = (struct rbx_nic_server){ .event = { .run = end_service } };
}

static void begin_service(struct rbx_nic_server *server, uint64_t since_ps)
{
	struct rbx_nic_job *job = server->first;
	uint64_t begin_ps = RBX_MAX(server->free_ps, since_ps);

	server->serving = true;
	server->free_ps = job->serve(job, begin_ps);
	RBX_ASSERT(server->free_ps >= begin_ps);
	server->jobs++;
	server->busy_ps += server->free_ps - begin_ps;
	rbx_sim_at(&server->event, rbx_nic_ns(server->free_ps));
}

static void unlink_job(struct rbx_nic_job *job)
{
	struct rbx_nic_server *server = job->server;

	if (job->previous)
		job->previous->next = job->next;
	else
		server->first = job->next;
	if (job->next)
		job->next->previous = job->previous;
	else
		server->last = job->previous;
	job->server = NULL;
	server->queued_count--;
}

/* A queued job has waited, so it begins when the last service ended. */
static void serve_next(struct rbx_nic_server *server)
{
	server->serving = false;
	if (server->first)
		begin_service(server, 0);
}

static void end_service(struct rbx_sim_event *event)
{
	struct rbx_nic_server *server =
		RBX_CONTAINER_OF(event, struct rbx_nic_server, event);
	struct rbx_nic_job *job = server->first;

	unlink_job(job);
	serve_next(server);
	job->done(job);
}

void rbx_nic_server_add(struct rbx_nic_server *server, struct rbx_nic_job *job)
{
	RBX_ASSERT(!job->server);
	job->server = server;
	job->next = NULL;
	job->previous = server->last;
	if (server->last)
		server->last->next = job;
	else
		server->first = job;
	server->last = job;
	if (++server->queued_count > server->queued_peak)
		server->queued_peak = server->queued_count;
	if (!server->serving)
		begin_service(server, rbx_nic_ps(rbx_sim_now()));
}

void rbx_nic_server_remove(struct rbx_nic_job *job)
{
	struct rbx_nic_server *server = job->server;
	bool served;

	if (!server)
		return;
	served = server->first == job;
	unlink_job(job);
	if (served) {
		rbx_sim_cancel(&server->event);
		serve_next(server);
	}
}
