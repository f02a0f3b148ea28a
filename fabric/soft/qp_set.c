/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * qp_set.c - keeps the qps of one epoll instance.
 *
 * Slots are reused. The generation of a slot changes when its qp leaves, so an old token
 * finds nothing. The table only grows, when a qp is added. A set holds no reference of its
 * own: a qp leaves its sets before its owner's reference is dropped, so a qp found in a slot
 * is alive.
 */
#include "qp_set.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "queue_pair.h"

int soft_qp_set_open(struct soft_qp_set *set)
{
	*set = (struct soft_qp_set){
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
	};
	if (set->epoll_fd < 0)
		return -errno;
	pthread_mutex_init(&set->lock, NULL);
	return 0;
}

void soft_qp_set_close(struct soft_qp_set *set)
{
	assert(!atomic_load(&set->count));
	close(set->epoll_fd);
	free(set->slots);
	pthread_mutex_destroy(&set->lock);
}

int soft_qp_set_add_fd(struct soft_qp_set *set, int fd, uint64_t token)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = token };

	return epoll_ctl(set->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int set_grow_locked(struct soft_qp_set *set)
{
	uint32_t count = set->slot_count ? 2 * set->slot_count : 4;
	struct soft_qp_slot *slots;

	slots = realloc(set->slots, count * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t i = set->slot_count; i < count; i++)
		slots[i] = (struct soft_qp_slot){ 0 };
	set->slots = slots;
	set->slot_count = count;
	return 0;
}

int soft_qp_set_add(struct soft_qp_set *set, struct soft_qp *qp,
		    uint64_t *token)
{
	uint32_t slot;
	int err = 0;

	pthread_mutex_lock(&set->lock);
	for (slot = 0; slot < set->slot_count; slot++)
		if (!set->slots[slot].qp)
			break;
	if (slot == set->slot_count)
		err = set_grow_locked(set);
	if (!err) {
		*token = (uint64_t)set->slots[slot].generation << 32 | slot;
		err = soft_qp_set_add_fd(set, qp->fd, *token);
	}
	if (!err) {
		set->slots[slot].qp = qp;
		atomic_fetch_add_explicit(&set->count, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&set->lock);
	return err;
}

void soft_qp_set_remove(struct soft_qp_set *set, uint64_t token)
{
	struct soft_qp_slot *slot;

	pthread_mutex_lock(&set->lock);
	slot = &set->slots[(uint32_t)token];
	slot->qp = NULL;
	slot->generation = (slot->generation + 1) & INT32_MAX;
	atomic_fetch_sub_explicit(&set->count, 1, memory_order_relaxed);
	pthread_mutex_unlock(&set->lock);
}

void soft_qp_set_watch(struct soft_qp_set *set, struct soft_qp *qp,
		       uint64_t token, bool output)
{
	struct epoll_event event = {
		.events = EPOLLIN | (output ? EPOLLOUT : 0),
		.data.u64 = token,
	};

	epoll_ctl(set->epoll_fd, EPOLL_CTL_MOD, qp->fd, &event);
}

void soft_qp_set_unwatch(struct soft_qp_set *set, struct soft_qp *qp)
{
	epoll_ctl(set->epoll_fd, EPOLL_CTL_DEL, qp->fd, NULL);
}

struct soft_qp *soft_qp_set_get(struct soft_qp_set *set, uint64_t token)
{
	uint32_t slot = (uint32_t)token;
	struct soft_qp *qp = NULL;

	pthread_mutex_lock(&set->lock);
	if (slot < set->slot_count &&
	    set->slots[slot].generation == token >> 32)
		qp = set->slots[slot].qp;
	if (qp)
		soft_qp_hold(qp);
	pthread_mutex_unlock(&set->lock);
	return qp;
}

struct soft_qp *soft_qp_set_next(struct soft_qp_set *set, uint32_t *slot)
{
	struct soft_qp *qp = NULL;

	pthread_mutex_lock(&set->lock);
	while (!qp && *slot < set->slot_count)
		qp = set->slots[(*slot)++].qp;
	if (qp)
		soft_qp_hold(qp);
	pthread_mutex_unlock(&set->lock);
	return qp;
}
