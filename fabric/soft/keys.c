/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keys.c - registers memory, checks keys, and takes keys back.
 *
 * A key is a slot of the table and a generation. The generation of a slot
 * starts at random and moves on with each use, so that a key which was taken
 * back is refused until its slot has been used 65,535 times more; slots are
 * reused oldest first. A guess is right once in 65,536 and costs the guesser
 * its connection; of another domain it is never right. lkey and rkey of a region
 * are the same number.
 *
 * Taking a key back has to end what is under way. All use of registered
 * memory on behalf of a peer happens with the lock of some qp held, from the
 * check of the key to the end of the system call that moves the bytes. So
 * deregistration clears the words first and then takes and releases the lock
 * of every qp once: who looked before has finished, who looks later is
 * refused. It costs the data path nothing.
 *
 * That cannot stop a peer on this host that copies through its own mapping
 * of a memory file (mapping.c). Such a peer checks the word before and after
 * its copy and never reports a copy as good whose key was taken back, but its
 * copy may still touch the pages. The owner of the memory file must therefore
 * abandon it: punch a hole, close it, never hand it to somebody else.
 *
 * A file that peers map is sealed against shrinking when it is registered,
 * since a page that vanished under a mapping would kill the peer.
 */
#include "keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "device.h"
#include "queue_pair.h"

static uint32_t key_index(uint32_t key)
{
	return key & (SOFT_KEY_COUNT - 1);
}

int soft_keys_open(struct soft_keys *keys, char *error)
{
	int fd, rc;

	fd = memfd_create("rdmabox-keys", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, SOFT_KEY_WORDS_BYTES) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)) {
		rc = -errno;
		goto out_close;
	}
	keys->words = mmap(NULL, SOFT_KEY_WORDS_BYTES, PROT_READ | PROT_WRITE,
			   MAP_SHARED, fd, 0);
	if (keys->words == MAP_FAILED) {
		rc = -errno;
		goto out_close;
	}
	keys->slots = calloc(SOFT_KEY_COUNT, sizeof(*keys->slots));
	if (!keys->slots) {
		rc = -ENOMEM;
		goto out_unmap;
	}
	keys->words_fd = soft_reopen_read_only(fd);
	close(fd);
	keys->unused = 1; /* slot 0 is SOFT_ANY_LKEY */
	pthread_mutex_init(&keys->lock, NULL);
	return 0;

out_unmap:
	munmap(keys->words, SOFT_KEY_WORDS_BYTES);
out_close:
	soft_explain(error, "cannot make the key table: %s; is there memory?",
		     strerror(-rc));
	if (fd >= 0)
		close(fd);
	return rc;
}

void soft_keys_close(struct soft_keys *keys)
{
	pthread_mutex_destroy(&keys->lock);
	free(keys->slots);
	munmap(keys->words, SOFT_KEY_WORDS_BYTES);
	if (keys->words_fd >= 0)
		close(keys->words_fd);
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

static int mr_check(const struct soft_device *device,
		    const struct rbx_mr_init *init, char *error)
{
	if (!init->addr || !init->length_bytes ||
	    (uintptr_t)init->addr + init->length_bytes < (uintptr_t)init->addr ||
	    init->rights & ~(uint32_t)(RBX_LOCAL_WRITE | RBX_REMOTE_READ |
				       RBX_REMOTE_WRITE)) {
		soft_explain(error, "cannot register %zu bytes at %p: "
			     "not a range of memory, or unknown rights",
			     init->length_bytes, init->addr);
		return -EINVAL;
	}
	if (!device->same_host_mapping || init->memory_fd < 0)
		return 0;
	if (fcntl(init->memory_fd, F_ADD_SEALS, F_SEAL_SHRINK) &&
	    !(fcntl(init->memory_fd, F_GET_SEALS) & F_SEAL_SHRINK)) {
		soft_explain(error, "cannot seal a memory file against "
			     "shrinking: %s; make it with memfd_create(..., "
			     "MFD_ALLOW_SEALING)", strerror(errno));
		return -EINVAL;
	}
	return 0;
}

/* A generation of 0 would let slot 0's key, SOFT_ANY_LKEY, look valid. */
static uint32_t next_generation(uint32_t generation)
{
	uint16_t start;

	if (!generation &&
	    getrandom(&start, sizeof(start), GRND_NONBLOCK) == sizeof(start))
		generation = start;
	generation = (generation + 1) & 0xffff;
	return generation ? generation : 1;
}

static int register_one(struct soft_device *device,
			const struct rbx_mr_init *init, struct rbx_mr **mr,
			char *error)
{
	struct soft_keys *keys = &device->keys;
	struct soft_mr *slot;
	uint32_t index, key;
	int rc;

	rc = mr_check(device, init, error);
	if (rc)
		return rc;
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
	slot->domain = init->domain;
	slot->rights = init->rights;
	slot->memory_fd = init->memory_fd;
	slot->memory_fd_offset = init->memory_fd_offset;
	atomic_store_explicit(&keys->words[index], key, memory_order_release);
	*mr = &slot->mr;
	return 0;
}

int soft_create_domain(struct rbx_device *base, struct rbx_domain **domain,
		       char *error)
{
	*domain = malloc(sizeof(**domain));
	if (!*domain) {
		soft_explain(error, "cannot make a protection domain: no memory");
		return -ENOMEM;
	}
	(*domain)->device = base;
	return 0;
}

void soft_destroy_domain(struct rbx_domain *domain)
{
	free(domain);
}

int soft_register_memory(struct rbx_device *base,
			 const struct rbx_mr_init *inits, size_t count,
			 struct rbx_mr **mrs, char *error)
{
	struct soft_device *device = soft_device_of(base);
	size_t i;
	int rc;

	for (i = 0; i < count; i++) {
		rc = register_one(device, &inits[i], &mrs[i], error);
		if (rc) {
			soft_deregister_memory(base, mrs, i);
			return rc;
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
	for (i = 0; i < count; i++)
		atomic_store(&keys->words[key_index(mrs[i]->rkey)], 0);
	soft_device_wait_for_qps(device);
	for (i = 0; i < count; i++)
		keys_give_slot(keys, (struct soft_mr *)mrs[i]);
}

const struct soft_mr *soft_keys_find(struct soft_qp *qp, uint32_t key,
				     uint64_t addr, uint64_t length_bytes,
				     uint32_t rights)
{
	const struct soft_keys *keys = &qp->device->keys;
	const struct soft_mr *slot = &keys->slots[key_index(key)];
	uint64_t start;

	/* A never used slot holds 0, and so does slot 0: the key decides. */
	if (!key || atomic_load_explicit(&keys->words[key_index(key)],
					 memory_order_acquire) != key)
		return NULL;
	if (slot->domain != qp->domain)
		return NULL;
	start = (uintptr_t)slot->mr.addr;
	if (addr < start || length_bytes > slot->mr.length_bytes ||
	    addr - start > slot->mr.length_bytes - length_bytes)
		return NULL;
	if ((slot->rights & rights) != rights)
		return NULL;
	return slot;
}
