/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keys.c - registers memory, checks keys, and takes keys back.
 *
 * A key is a slot of the table and a generation. The generation of a slot starts at random
 * and advances with each use, so a key that was taken back is refused until its slot has been
 * used 65,535 times more. Slots are reused oldest first. A guess is right once in 65,536 and
 * otherwise costs the peer its connection; a key of another domain is never right. lkey and
 * rkey of a region are the same number.
 *
 * Taking a key back has to end what is under way. All use of registered memory on behalf of a
 * peer happens with the lock of some qp held, from the check of the key to the end of the
 * system call that moves the bytes. So deregistration clears the words first and then takes
 * and releases the lock of every qp once: a thread that looked before has finished, and one
 * that looks later is refused. It costs the data path nothing.
 *
 * A peer ends a key with the lock of its own qp held, and cannot wait for others: operations
 * of other connections that are under way go on until the owner deregisters.
 *
 * Neither stops a peer on this host that copies through its own mapping of a memory file
 * (mapping.c). Such a peer checks the shared word (key_words.c) before and after its copy,
 * and never reports a copy as good whose key was taken back. But its copy may still touch the
 * pages. So the owner of the memory file must abandon it: punch a hole, close it, and never
 * give it to another peer.
 *
 * A file that peers map is sealed when it is registered. Its size is sealed, since a page
 * that disappeared under a mapping would kill the process that touches it. Its seals are
 * sealed, since a peer that has the file could otherwise forbid us to empty it.
 */
#include "keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "device.h"
#include "queue_pair.h"

static uint32_t key_index(uint32_t key)
{
	return key & (SOFT_KEY_COUNT - 1);
}

int soft_keys_open(struct soft_keys *keys, bool shown, char *error)
{
	keys->slots = calloc(SOFT_KEY_COUNT, sizeof(*keys->slots));
	if (!keys->slots) {
		soft_explain(error, "cannot make the key table: no memory");
		return -ENOMEM;
	}
	keys->own.shown.fd = -1;
	if (shown)
		(void)soft_key_words_open(&keys->own.shown);
	keys->unused = 1; /* slot 0 is SOFT_ANY_LKEY */
	pthread_mutex_init(&keys->lock, NULL);
	return 0;
}

void soft_keys_close(struct soft_keys *keys)
{
	pthread_mutex_destroy(&keys->lock);
	free(keys->slots);
	soft_key_words_close(&keys->own.shown);
}

static struct soft_mr *keys_take_slot(struct soft_keys *keys)
{
	uint32_t index = 0;

	pthread_mutex_lock(&keys->lock);
	if (keys->unused < SOFT_KEY_COUNT) {
		index = keys->unused++;
	} else if (keys->free_first) {
		index = keys->free_first;
		keys->free_first = keys->slots[index].next_free;
	}
	pthread_mutex_unlock(&keys->lock);
	return index ? &keys->slots[index] : NULL;
}

static void keys_give_slot(struct soft_keys *keys, struct soft_mr *slot)
{
	uint32_t index = (uint32_t)(slot - keys->slots);

	pthread_mutex_lock(&keys->lock);
	slot->next_free = 0;
	if (keys->free_first)
		keys->slots[keys->free_last].next_free = index;
	else
		keys->free_first = index;
	keys->free_last = index;
	pthread_mutex_unlock(&keys->lock);
}

/* It may have been sealed before, for another registration. */
static int file_seal(int fd, char *error)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	if (!fcntl(fd, F_ADD_SEALS, seals) ||
	    (fcntl(fd, F_GET_SEALS) & seals) == seals)
		return 0;
	soft_explain(error, "cannot seal a memory file: %s; make it with "
		     "memfd_create(..., MFD_ALLOW_SEALING)", strerror(errno));
	return -EINVAL;
}

static int mr_check(const struct soft_device *device,
		    const struct rbx_mr_init *init, char *error)
{
	if (!init->addr || !init->length_bytes ||
	    (uintptr_t)init->addr + init->length_bytes < (uintptr_t)init->addr ||
	    init->rights & ~(uint32_t)(RBX_LOCAL_WRITE | RBX_REMOTE_READ |
				       RBX_REMOTE_WRITE | RBX_REMOTE_ATOMIC |
				       RBX_REMOTE_INVALIDATE | RBX_WINDOWS)) {
		soft_explain(error, "cannot register %zu bytes at %p: "
			     "not a range of memory, or unknown rights",
			     init->length_bytes, init->addr);
		return -EINVAL;
	}
	if (!device->same_host_mapping || init->memory_fd < 0)
		return 0;
	return file_seal(init->memory_fd, error);
}

/* A generation of 0 would make slot 0's key, SOFT_ANY_LKEY, look valid. */
static uint32_t next_generation(uint32_t generation)
{
	uint16_t start;

	if (!generation &&
	    getrandom(&start, sizeof(start), GRND_NONBLOCK) == sizeof(start))
		generation = start;
	generation = (generation + 1) & 0xffff;
	return generation ? generation : 1;
}

/* The word that peers see of a key: only if they can map its memory. */
static soft_key_word *shown_word(const struct soft_mr *slot, uint32_t key)
{
	soft_key_word *words = slot->domain->shown.words;

	return words && slot->memory_fd >= 0 ? &words[key_index(key)] : NULL;
}

static int mr_check_kind(const struct rbx_mr_init *init, char *error)
{
	if (!init->is_dmabuf)
		return 0;
	soft_explain(error, "the soft device uses the CPU, which must not access a "
		     "dmabuf: register it with an RDMA device");
	return -EOPNOTSUPP;
}

/* qp: only the peer of this qp may use it; NULL: all of the domain. */
static int register_one(struct soft_device *device, const struct soft_qp *qp,
			const struct rbx_mr_init *init, struct rbx_mr **mr,
			char *error)
{
	struct soft_keys *keys = &device->keys;
	soft_key_word *shown;
	struct soft_mr *slot;
	uint32_t index, key;
	int err;

	err = mr_check_kind(init, error);
	if (!err)
		err = mr_check(device, init, error);
	if (err)
		return err;
	slot = keys_take_slot(keys);
	if (!slot) {
		soft_explain(error, "all %u memory keys are in use; register "
			     "fewer, larger regions", SOFT_KEY_COUNT - 1);
		return -ENOSPC;
	}
	index = (uint32_t)(slot - keys->slots);
	slot->generation = next_generation(slot->generation);
	key = slot->generation << SOFT_KEY_INDEX_BITS | index;
	slot->mr = (struct rbx_mr){
		.device = &device->device,
		.addr = init->addr,
		.length_bytes = init->length_bytes,
		.lkey = key,
		.rkey = key,
	};
	slot->domain = soft_domain_of(keys, init->domain);
	slot->rights = init->rights;
	slot->memory_fd = init->memory_fd;
	slot->memory_fd_offset = init->memory_fd_offset;
	slot->qp = qp;
	atomic_store_explicit(&slot->key, key, memory_order_release);
	shown = shown_word(slot, key);
	if (shown)
		atomic_store_explicit(shown, key, memory_order_release);
	*mr = &slot->mr;
	return 0;
}

int soft_create_domain(struct rbx_device *base, struct rbx_domain **out,
		       char *error)
{
	struct soft_device *device = soft_device_of(base);
	struct soft_domain *domain = malloc(sizeof(*domain));

	if (!domain) {
		soft_explain(error, "cannot make a protection domain: no memory");
		return -ENOMEM;
	}
	*domain = (struct soft_domain){ .domain.device = base, .shown.fd = -1 };
	/* Without it the peers of this domain use frames. */
	if (device->same_host_mapping)
		(void)soft_key_words_open(&domain->shown);
	*out = &domain->domain;
	return 0;
}

void soft_destroy_domain(struct rbx_domain *base)
{
	struct soft_domain *domain = (struct soft_domain *)base;

	soft_key_words_close(&domain->shown);
	free(domain);
}

int soft_register_memory(struct rbx_device *base,
			 const struct rbx_mr_init *inits, size_t count,
			 struct rbx_mr **mrs, char *error)
{
	struct soft_device *device = soft_device_of(base);
	size_t i;
	int err;

	for (i = 0; i < count; i++) {
		err = register_one(device, NULL, &inits[i], &mrs[i], error);
		if (err) {
			soft_deregister_memory(base, mrs, i);
			return err;
		}
	}
	return 0;
}

void soft_deregister_memory(struct rbx_device *base, struct rbx_mr **mrs,
			    size_t count)
{
	struct soft_device *device = soft_device_of(base);
	struct soft_keys *keys = &device->keys;
	size_t i;

	/*
	 * Sequentially consistent: a peer on this host writes data, then loads
	 * the word; the owner clears the word, then reads the data. One of the
	 * two sees the other (the fence in soft_mapping_carry_out()).
	 */
	for (i = 0; i < count; i++) {
		struct soft_mr *slot = (struct soft_mr *)mrs[i];
		soft_key_word *shown = shown_word(slot, mrs[i]->rkey);

		if (shown)
			atomic_store(shown, 0);
		atomic_store(&slot->key, 0);
	}
	soft_device_wait_for_qps(device);
	for (i = 0; i < count; i++)
		keys_give_slot(keys, (struct soft_mr *)mrs[i]);
}

static bool slot_covers(const struct soft_mr *slot, uint64_t addr,
			uint64_t length_bytes, uint32_t rights)
{
	uint64_t start = (uintptr_t)slot->mr.addr;

	if (addr < start || length_bytes > slot->mr.length_bytes ||
	    addr - start > slot->mr.length_bytes - length_bytes)
		return false;
	return (slot->rights & rights) == rights;
}

int soft_register_window(struct soft_qp *qp,
			 const struct rbx_device_window_init *init,
			 struct rbx_mr **mr, char *error)
{
	const struct soft_mr *of = (const struct soft_mr *)init->mr;
	const uint64_t offset = (uintptr_t)init->addr - (uintptr_t)of->mr.addr;
	const struct rbx_mr_init part = {
		.domain = (struct rbx_domain *)&of->domain->domain,
		.addr = init->addr,
		.length_bytes = init->length_bytes,
		.rights = init->rights,
		.memory_fd = of->memory_fd,
		.memory_fd_offset = of->memory_fd_offset + offset,
	};

	if (of->domain != qp->domain || !(of->rights & RBX_WINDOWS) ||
	    init->rights & RBX_WINDOWS ||
	    !slot_covers(of, (uintptr_t)init->addr, init->length_bytes, 0)) {
		soft_explain(error, "cannot open a window: it is not in a region "
			     "that allows them, of the domain of the connection");
		return -EINVAL;
	}
	return register_one(qp->device, qp, &part, mr, error);
}

/* The slot of a key that is valid in this domain; NULL: it is not. */
static struct soft_mr *slot_of(const struct soft_keys *keys,
			       const struct soft_domain *domain, uint32_t key)
{
	struct soft_mr *slot = &keys->slots[key_index(key)];

	/* A slot that was never used holds 0, and so does slot 0: the key decides. */
	if (!key ||
	    atomic_load_explicit(&slot->key, memory_order_acquire) != key)
		return NULL;
	if (slot->domain != domain)
		return NULL;
	return slot;
}

/* The same for the peer of a qp. */
static struct soft_mr *slot_of_peer(const struct soft_qp *qp, uint32_t key)
{
	struct soft_mr *slot = slot_of(&qp->device->keys, qp->domain, key);

	return slot && (!slot->qp || slot->qp == qp) ? slot : NULL;
}

bool soft_keys_invalidate(struct soft_qp *qp, uint32_t key)
{
	struct soft_mr *slot = slot_of_peer(qp, key);
	soft_key_word *shown;

	if (!slot || !(slot->rights & RBX_REMOTE_INVALIDATE))
		return false;
	shown = shown_word(slot, key);
	if (shown)
		atomic_store(shown, 0);
	/* If two peers, or a peer and the owner, end it at once, one of them succeeds. */
	return atomic_compare_exchange_strong(&slot->key, &key, 0);
}

const struct soft_mr *soft_keys_find(struct soft_qp *qp, uint32_t key,
				     uint64_t addr, uint64_t length_bytes,
				     uint32_t rights)
{
	const struct soft_mr *slot = slot_of_peer(qp, key);

	return slot && slot_covers(slot, addr, length_bytes, rights) ? slot :
								       NULL;
}

bool soft_keys_cover(struct soft_keys *keys, const struct soft_domain *domain,
		     const struct rbx_sge *sge, uint32_t rights)
{
	const struct soft_mr *slot;

	if (!sge->length_bytes)
		return true;
	if (sge->lkey == SOFT_ANY_LKEY)
		return keys->has_any_lkey;
	slot = slot_of(keys, domain, sge->lkey);
	return slot && slot_covers(slot, sge->addr, sge->length_bytes, rights);
}
