// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Volumes, and the jobs that use them.
 *
 * A volume belongs to the context that opened it, and a context to its process. By
 * default fio makes a process for each job. Then each job has its own volume, which it
 * opens after the fork. With thread=1 the jobs are threads of one process, and jobs with
 * the same options share a volume.
 *
 * All jobs join before the first one starts (fio calls setup() of all of them first), and
 * leave when they have ended. So the volume outlives a job that ends before the next one
 * begins (stonewall), and the next one finds what the first one wrote. The first job that
 * needs it opens it, and the last one that leaves closes it.
 *
 * A named volume is there when the last job has left it, for other programs too. Only one
 * process at a time has it open.
 *
 * A process may be forked while threads have this file's lock. The job of the child has
 * its own volume and takes no lock.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <fio.h>

#include "share.h"

struct share {
	struct share *next; /* in the list of shared ones */
	struct share_wish wish; /* bytes: the most of any job; tell_counters: if any wants it */
	unsigned int jobs;
	struct rbx_context *ctx; /* NULL: not open */
	struct rbx_volume *volume;
};

/* Guards the list and all that is in it. */
static pthread_mutex_t shares_lock = PTHREAD_MUTEX_INITIALIZER;
static struct share *shares;

static bool is_same_name(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool is_same(const struct share_wish *a, const struct share_wish *b)
{
	return !strcmp(a->servers, b->servers) &&
	       !memcmp(&a->options, &b->options, sizeof(a->options)) &&
	       a->volume.replicas == b->volume.replicas &&
	       a->volume.checksums == b->volume.checksums &&
	       a->volume.on_demand == b->volume.on_demand &&
	       a->volume.take_over == b->volume.take_over &&
	       is_same_name(a->volume.name, b->volume.name);
}

static void share_free(struct share *share)
{
	free((char *)share->wish.volume.name);
	free((char *)share->wish.servers);
	free(share);
}

static struct share *share_create(const struct share_wish *wish)
{
	struct share *share = calloc(1, sizeof(*share));

	if (!share)
		return NULL;
	share->wish = *wish;
	share->wish.servers = strdup(wish->servers);
	if (wish->volume.name)
		share->wish.volume.name = strdup(wish->volume.name);
	if (!share->wish.servers || (wish->volume.name && !share->wish.volume.name)) {
		share_free(share);
		return NULL;
	}
	share->jobs = 1;
	return share;
}

static struct share *join_threads(const struct share_wish *wish)
{
	struct share *share;

	for (share = shares; share; share = share->next) {
		if (!is_same(&share->wish, wish))
			continue;
		share->jobs++;
		share->wish.tell_counters |= wish->tell_counters;
		if (!share->ctx && wish->bytes > share->wish.bytes)
			share->wish.bytes = wish->bytes;
		return share;
	}
	share = share_create(wish);
	if (share) {
		share->next = shares;
		shares = share;
	}
	return share;
}

struct share *share_join(const struct share_wish *wish)
{
	struct share *share;

	if (!wish->is_thread)
		return share_create(wish);
	pthread_mutex_lock(&shares_lock);
	share = join_threads(wish);
	pthread_mutex_unlock(&shares_lock);
	return share;
}

static void tell_event(struct rbx_volume *volume, const struct rbx_event *event,
		       void *user)
{
	(void)volume, (void)user;
	log_err("rdmabox: %s%s%s: %s\n", rbx_event_name(event->kind),
		*event->server ? " " : "", event->server, event->reason);
}

/* The library says who has a named volume open, if somebody has. */
static void tell_failure(const struct share *share, int err)
{
	bool is_held = err == -EBUSY && share->wish.volume.name && !share->wish.volume.take_over;

	log_err("rdmabox: %s%s\n", rbx_last_error(),
		is_held ? ", or give take_over=1. Jobs of one fio share it with thread=1 and the same options" :
			  "");
}

static int open_volume(struct share *share)
{
	bool is_named = share->wish.volume.name;
	int err;

	share->wish.volume.event = tell_event;
	err = rbx_open(&share->ctx, &share->wish.options);
	if (err) {
		log_err("rdmabox: %s\n", rbx_last_error());
		share->ctx = NULL;
		return err;
	}
	err = rbx_volume_open(share->ctx, &share->volume, share->wish.servers,
			      is_named ? 0 : share->wish.bytes, &share->wish.volume);
	if (err) {
		tell_failure(share, err);
		rbx_close(share->ctx);
		share->ctx = NULL;
	}
	return err;
}

static int open_locked(struct share *share, uint64_t bytes)
{
	int err = share->ctx ? 0 : open_volume(share);

	if (!err && rbx_volume_size(share->volume) < bytes) {
		/* Only if jobs are set up late: create_serialize=0. */
		log_err("rdmabox: other jobs have opened the volume with %llu bytes, and this one needs %llu; give all of them the same volume=\n",
			(unsigned long long)rbx_volume_size(share->volume),
			(unsigned long long)bytes);
		err = -EINVAL;
	}
	return err;
}

int share_open(struct share *share, uint64_t bytes)
{
	int err;

	if (!share->wish.is_thread)
		return open_locked(share, bytes);
	pthread_mutex_lock(&shares_lock);
	err = open_locked(share, bytes);
	pthread_mutex_unlock(&shares_lock);
	return err;
}

/* On stderr, since stdout may be fio's JSON. */
static void tell_counters(struct rbx_context *ctx)
{
	struct rbx_stats stats;

	rbx_stats_get(ctx, &stats);
#define COUNTER(name) (unsigned long long)stats.name
	log_err("rdmabox: counters: requests=%llu bytes=%llu work_requests=%llu doorbells=%llu merged_requests=%llu completions=%llu window_waits=%llu inflight_bytes_max=%llu staged_bytes=%llu failovers=%llu\n",
		COUNTER(requests), COUNTER(bytes), COUNTER(work_requests), COUNTER(doorbells),
		COUNTER(merged_requests), COUNTER(completions), COUNTER(window_waits),
		COUNTER(inflight_bytes_max), COUNTER(staged_bytes), COUNTER(failovers));
#undef COUNTER
}

static void share_end(struct share *share)
{
	if (share->ctx) {
		if (share->wish.tell_counters)
			tell_counters(share->ctx);
		rbx_volume_close(share->volume);
		rbx_close(share->ctx);
	}
	share_free(share);
}

static void leave_threads(struct share *share)
{
	struct share **at = &shares;

	if (--share->jobs)
		return;
	while (*at != share)
		at = &(*at)->next;
	*at = share->next;
	share_end(share);
}

void share_leave(struct share *share)
{
	if (!share->wish.is_thread) {
		share_end(share);
		return;
	}
	pthread_mutex_lock(&shares_lock);
	leave_threads(share);
	pthread_mutex_unlock(&shares_lock);
}

struct rbx_context *share_context(const struct share *share)
{
	return share->ctx;
}

struct rbx_volume *share_volume(const struct share *share)
{
	return share->volume;
}
