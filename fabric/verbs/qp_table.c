/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* qp_table.c - finds a queue pair by its number; see qp_table.h. */
#include "fabric/verbs/qp_table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static uint32_t leaf_index(uint32_t qp_num)
{
	return (qp_num >> RBX_VERBS_QP_LEAF_BITS) % RBX_VERBS_QP_LEAF_COUNT;
}

void rbx_verbs_qp_table_init(struct rbx_verbs_qp_table *table)
{
	uint32_t i;

	pthread_mutex_init(&table->lock, NULL);
	for (i = 0; i < RBX_VERBS_QP_LEAF_COUNT; i++)
		atomic_init(&table->leaves[i], NULL);
}

void rbx_verbs_qp_table_destroy(struct rbx_verbs_qp_table *table)
{
	uint32_t i;

	for (i = 0; i < RBX_VERBS_QP_LEAF_COUNT; i++)
		free(atomic_load(&table->leaves[i]));
	pthread_mutex_destroy(&table->lock);
}

static struct rbx_verbs_qp_leaf *leaf_get(struct rbx_verbs_qp_table *table,
					  uint32_t index)
{
	struct rbx_verbs_qp_leaf *leaf;

	pthread_mutex_lock(&table->lock);
	leaf = atomic_load(&table->leaves[index]);
	if (!leaf) {
		leaf = calloc(1, sizeof(*leaf));
		atomic_store(&table->leaves[index], leaf);
	}
	pthread_mutex_unlock(&table->lock);
	return leaf;
}

int rbx_verbs_qp_table_add(struct rbx_verbs_qp_table *table, uint32_t qp_num,
			   struct rbx_verbs_qp *qp)
{
	struct rbx_verbs_qp_leaf *leaf = leaf_get(table, leaf_index(qp_num));

	if (!leaf)
		return -ENOMEM;
	atomic_store(&leaf->qps[qp_num % RBX_VERBS_QP_LEAF_COUNT], qp);
	return 0;
}

void rbx_verbs_qp_table_remove(struct rbx_verbs_qp_table *table,
			       uint32_t qp_num)
{
	struct rbx_verbs_qp_leaf *leaf =
		atomic_load(&table->leaves[leaf_index(qp_num)]);

	assert(leaf);
	atomic_store(&leaf->qps[qp_num % RBX_VERBS_QP_LEAF_COUNT], NULL);
}
