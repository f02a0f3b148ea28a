/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* local_keys.c - a pool of entries for chains of keys, see local_keys.h. */
#include "lib/buffers/local_keys.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/error.h"

int rbx_local_keys_open(struct rbx_local_keys **out)
{
	struct rbx_local_keys *keys = calloc(1, sizeof(*keys));

	if (!keys)
		return rbx_error(-ENOMEM, "no memory for %u keys", RBX_LOCAL_KEYS_MAX);
	pthread_mutex_init(&keys->lock, NULL);
	*out = keys;
	return 0;
}

void rbx_local_keys_close(struct rbx_local_keys *keys)
{
	if (!keys)
		return;
	pthread_mutex_destroy(&keys->lock);
	free(keys);
}

static struct rbx_local_key *take_locked(struct rbx_local_keys *keys)
{
	struct rbx_local_key *key = keys->free_first;

	if (key)
		keys->free_first = key->next;
	else if (keys->touched_count < RBX_LOCAL_KEYS_MAX)
		key = &keys->keys[keys->touched_count++];
	return key;
}

static void give_locked(struct rbx_local_keys *keys, struct rbx_local_key *first)
{
	struct rbx_local_key *next;

	for (; first; first = next) {
		next = first->next;
		first->next = keys->free_first;
		keys->free_first = first;
	}
}

struct rbx_local_key *rbx_local_keys_take(struct rbx_local_keys *keys, uint32_t count)
{
	struct rbx_local_key *first = NULL, *key;

	pthread_mutex_lock(&keys->lock);
	for (; count; count--) {
		key = take_locked(keys);
		if (!key) {
			give_locked(keys, first);
			first = NULL;
			break;
		}
		key->next = first;
		first = key;
	}
	pthread_mutex_unlock(&keys->lock);
	return first;
}

void rbx_local_keys_give(struct rbx_local_keys *keys, struct rbx_local_key *first)
{
	pthread_mutex_lock(&keys->lock);
	give_locked(keys, first);
	pthread_mutex_unlock(&keys->lock);
}
