/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * qp_set.h - the connections that one thread serves: an epoll instance and the qps behind its
 * events.
 *
 * An event may be handled long after epoll_wait() returned it, when its qp is destroyed. So
 * events carry a token (a slot and its generation). Looking a token up gives the qp with a
 * reference, or nothing.
 */
#ifndef SOFT_QP_SET_H
#define SOFT_QP_SET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct soft_qp;

struct soft_qp_slot {
	struct soft_qp *qp; /* NULL: free */
	uint32_t generation; /* of its last user */
};

struct soft_qp_set {
	int epoll_fd;
	/* How many qps; read without the lock as a hint. */
	atomic_uint count;
	pthread_mutex_t lock; /* guards the slots; held for moments only */
	struct soft_qp_slot *slots;
	uint32_t slot_count;
};

/* Events that are not of a qp carry one of these tokens. */
#define SOFT_TOKEN_WAKE UINT64_MAX
#define SOFT_TOKEN_LISTENERS (UINT64_MAX - 1)

int soft_qp_set_open(struct soft_qp_set *set);
void soft_qp_set_close(struct soft_qp_set *set);
/* Adds another descriptor to the epoll instance. */
int soft_qp_set_add_fd(struct soft_qp_set *set, int fd, uint64_t token);

/* Adds a qp and watches its socket for input. */
int soft_qp_set_add(struct soft_qp_set *set, struct soft_qp *qp,
		    uint64_t *token);
/* Does not drop a reference: the caller does that when it drops the qp. */
void soft_qp_set_remove(struct soft_qp_set *set, uint64_t token);
/* Watches for output too, or no longer. */
void soft_qp_set_watch(struct soft_qp_set *set, struct soft_qp *qp,
		       uint64_t token, bool output);
/* Stops watching a socket; the qp stays in its slot. */
void soft_qp_set_unwatch(struct soft_qp_set *set, struct soft_qp *qp);

/* The qp with a reference, or NULL. */
struct soft_qp *soft_qp_set_get(struct soft_qp_set *set, uint64_t token);
/* The first qp in a slot >= *slot, with a reference, or NULL; moves *slot on */
struct soft_qp *soft_qp_set_next(struct soft_qp_set *set, uint32_t *slot);

#endif
