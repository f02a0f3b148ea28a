/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * qp_table.h - finds a queue pair by its number.
 *
 * A completion of libibverbs has only the number. Queue pair numbers have 24 bits. The table
 * is a tree of two levels of 12 bits each, of which only the leaves in use exist. A lookup
 * takes two loads and no lock. Leaves stay until the table is destroyed, so a lookup never
 * meets a freed one.
 *
 * Not here: making sure that no thread uses a queue pair any more when it is removed. The
 * remover does that, see rbx_verbs_destroy_qp().
 */
#ifndef RBX_VERBS_QP_TABLE_H
#define RBX_VERBS_QP_TABLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RBX_VERBS_QP_LEAF_BITS 12
#define RBX_VERBS_QP_LEAF_COUNT (1u << RBX_VERBS_QP_LEAF_BITS)

struct rbx_verbs_qp;

struct rbx_verbs_qp_leaf {
	_Atomic(struct rbx_verbs_qp *) qps[RBX_VERBS_QP_LEAF_COUNT];
};

struct rbx_verbs_qp_table {
	pthread_mutex_t lock; /* guards the creation of leaves */
	_Atomic(struct rbx_verbs_qp_leaf *) leaves[RBX_VERBS_QP_LEAF_COUNT];
};

void rbx_verbs_qp_table_init(struct rbx_verbs_qp_table *table);
void rbx_verbs_qp_table_destroy(struct rbx_verbs_qp_table *table);

/* 0, or -ENOMEM. */
int rbx_verbs_qp_table_add(struct rbx_verbs_qp_table *table, uint32_t qp_num,
			   struct rbx_verbs_qp *qp);
void rbx_verbs_qp_table_remove(struct rbx_verbs_qp_table *table,
			       uint32_t qp_num);

/* NULL: there is no such queue pair (any more). */
static inline struct rbx_verbs_qp *
rbx_verbs_qp_table_find(struct rbx_verbs_qp_table *table, uint32_t qp_num)
{
	uint32_t high = (qp_num >> RBX_VERBS_QP_LEAF_BITS) %
			RBX_VERBS_QP_LEAF_COUNT;
	struct rbx_verbs_qp_leaf *leaf = atomic_load_explicit(
		&table->leaves[high], memory_order_acquire);

	if (!leaf)
		return NULL;
	return atomic_load_explicit(
		&leaf->qps[qp_num % RBX_VERBS_QP_LEAF_COUNT],
		memory_order_acquire);
}

#endif
