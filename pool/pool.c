/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pool.c - the public calls of a pool, and what its kinds share, see pool.h.
 */
#include "pool/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/guard.h"

static const struct rbx_pool_kind *const kinds[] = {
	&rbx_pool_file,
	&rbx_pool_etcd,
	&rbx_pool_etcds,
	&rbx_pool_list,
};

static const struct rbx_pool_kind *kind_of(const char *text)
{
	size_t i = 0;

	while (strncmp(text, kinds[i]->prefix, strlen(kinds[i]->prefix)) != 0)
		i++; /* the last one has all */
	return kinds[i];
}

bool rbx_pool_text_may_change(const char *text)
{
	return kind_of(text) != &rbx_pool_list;
}

/* ---- For the kinds -----------------------------------------------------------*/

static void tell(struct rbx_pool *pool)
{
	(void)eventfd_write(pool->event_fd, 1);
}

void rbx_pool_set(struct rbx_pool *pool, struct rbx_members *members, const char *trouble)
{
	struct rbx_members former;
	bool is_news;

	pthread_mutex_lock(&pool->worker.lock);
	former = pool->members;
	is_news = !rbx_members_are_equal(&former, members);
	pool->members = *members;
	pthread_mutex_unlock(&pool->worker.lock);
	*members = (struct rbx_members){ .count = 0 };
	rbx_members_free(&former);
	is_news |= rbx_pool_worker_complain(&pool->worker, trouble);
	if (is_news)
		tell(pool);
}

void rbx_pool_complain(struct rbx_pool *pool, const char *text)
{
	if (rbx_pool_worker_complain(&pool->worker, text))
		tell(pool);
}

/* ---- The public calls ---------------------------------------------------------*/

static void pool_free(struct rbx_pool *pool)
{
	rbx_pool_worker_close(&pool->worker);
	if (pool->kind->close)
		pool->kind->close(pool);
	rbx_members_free(&pool->members);
	close(pool->event_fd);
	free(pool);
}

/* NULL: see rbx_last_error(), and *err. */
static struct rbx_pool *pool_make(int *err)
{
	struct rbx_pool *pool = calloc(1, sizeof(*pool));

	if (!pool) {
		*err = rbx_error(-ENOMEM, "out of memory");
		return NULL;
	}
	*err = rbx_pool_worker_open(&pool->worker);
	if (*err)
		goto out_free;
	pool->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (pool->event_fd >= 0)
		return pool;
	*err = rbx_error(-errno, "a pool needs a file descriptor: %s", strerror(errno));
	rbx_pool_worker_close(&pool->worker);
out_free:
	free(pool);
	return NULL;
}

int rbx_pool_open(struct rbx_pool **pool_out, const char *text)
{
	struct rbx_pool *pool;
	int err;

	if (!pool_out || !text)
		return rbx_error(-EINVAL, "a pointer for the pool and its text must be given");
	err = rbx_guard_thread("rbx_pool_open");
	if (err)
		return err;
	pool = pool_make(&err);
	if (!pool)
		return err;
	pool->kind = kind_of(text);
	err = pool->kind->open(pool, text + strlen(pool->kind->prefix));
	if (err) {
		pool_free(pool);
		return err;
	}
	*pool_out = pool;
	return 0;
}

size_t rbx_pool_members_get(struct rbx_pool *pool, struct rbx_pool_member *members,
			    size_t members_max)
{
	eventfd_t changes;
	size_t count;

	/* Before the members are read: what changes now makes it readable again. */
	(void)eventfd_read(pool->event_fd, &changes);
	pthread_mutex_lock(&pool->worker.lock);
	count = pool->members.count;
	if (members && members_max && count)
		memcpy(members, pool->members.list,
		       (count < members_max ? count : members_max) * sizeof(*members));
	pthread_mutex_unlock(&pool->worker.lock);
	return count;
}

int rbx_pool_event_fd(struct rbx_pool *pool)
{
	return pool->event_fd;
}

int rbx_pool_trouble(struct rbx_pool *pool, char *text, size_t text_bytes)
{
	return rbx_pool_worker_trouble(&pool->worker, text, text_bytes);
}

int rbx_pool_close(struct rbx_pool *pool)
{
	int err = pool ? rbx_pool_worker_guard(&pool->worker, "rbx_pool_close") : 0;

	if (pool && !err)
		pool_free(pool);
	return err;
}
