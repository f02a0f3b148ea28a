/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mapping.c - reads and writes memory of a peer on this host by memcpy.
 *
 * The first request under a key goes by frames, together with the question for its memory
 * file. A target on this host answers with that file and with the table that shows which keys
 * of the connection's domain are valid (key_words.c), if the key is one of them: a peer
 * without a valid key gets neither. Once the answer is there, requests under the key are done
 * during the post: the word of the key is checked, the bytes are copied, and after a fence
 * the word is checked again. Only a request whose key was valid after its copy completes.
 * Order is kept because a request is done in this way only when all before it are done; those
 * that come too early wait in the send queue.
 *
 * Everything else (no mapping, out of bounds, a missing right, a key that was taken back
 * before or during the copy) goes by frames, and the target answers as for any other request.
 * So there is one place that makes the error, and a READ whose copy was torn completes with
 * that error.
 *
 * Invalid memory of the program is a SIGSEGV here, as in memcpy(). With a copy that fails
 * instead (checked_copy.h), a request of 4 KiB takes 1.2 us instead of 0.2, and one of 64 KiB
 * 8 instead of 1.7 (bench/fabric_rate).
 *
 * A copy under way cannot be stopped. It may touch the pages of a key that was taken back. So
 * the owner of the memory file must abandon it: punch a hole and never give it to another
 * peer.
 *
 * A file shows all of itself to a process that gets its descriptor, whatever the bounds of
 * the key: memory that different peers may see has files of its own. Nor do the rights of a
 * descriptor bind its holder, who can open the file again. So memory that a peer may only
 * read is offered only if its file is sealed against writing, and memory that it may only
 * write is not offered.
 *
 * The peer runs as our user, but is not trusted to keep us alive: its file is mapped only if
 * it is long enough and sealed against shrinking, so no access can reach past the end of the
 * file. Mappings are bounded: each key has one slot, which keys share. A slot is freed when
 * its key was taken back. A valid key keeps it, and the other key goes by frames. The qp owns
 * its mappings and unmaps them when it is freed.
 */
#include "mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "descriptors.h"
#include "device.h"
#include "output.h"
#include "queue_pair.h"
#include "send_queue.h"

enum mapping_state {
	MAPPING_NONE, /* the slot is free */
	MAPPING_ASKED, /* the peer has not answered yet */
	MAPPING_REFUSED, /* this key uses frames */
	MAPPING_READY, /* memcpy */
};

struct mapping {
	uint32_t rkey;
	uint8_t state; /* enum mapping_state */
	uint32_t rights;
	uint64_t addr; /* first byte in the peer's address space... */
	uint64_t length_bytes;
	uint8_t *base; /* ... and in ours */
	void *pages; /* as mapped */
	size_t pages_bytes;
};

struct soft_mappings {
	const soft_key_word *words; /* of the peer; NULL: none came yet */
	uint32_t asked_count;
	struct mapping slots[SOFT_MAPPINGS_MAX];
};

int soft_mappings_create(struct soft_mappings **mappings)
{
	*mappings = calloc(1, sizeof(**mappings));
	return *mappings ? 0 : -ENOMEM;
}

static void mapping_drop(struct mapping *mapping)
{
	if (mapping->state == MAPPING_READY)
		munmap(mapping->pages, mapping->pages_bytes);
	mapping->state = MAPPING_NONE;
}

void soft_mappings_free(struct soft_mappings *mappings)
{
	uint32_t i;

	if (!mappings)
		return;
	for (i = 0; i < SOFT_MAPPINGS_MAX; i++)
		mapping_drop(&mappings->slots[i]);
	soft_key_words_unmap(mappings->words);
	free(mappings);
}

/*
 * Acquire: bytes read after this are not older than the key. With the fence in
 * mapping_verify() before it, it also comes after the bytes written.
 */
static bool key_is_valid(const struct soft_mappings *mappings, uint32_t rkey)
{
	const soft_key_word *word =
		&mappings->words[rkey & (SOFT_KEY_COUNT - 1)];

	return atomic_load_explicit(word, memory_order_acquire) == rkey;
}

/* A key may be valid if the peer has not shown its word yet. */
static bool key_may_be_valid(const struct soft_mappings *mappings,
			     uint32_t rkey)
{
	return !mappings->words || key_is_valid(mappings, rkey);
}

static struct mapping *mapping_slot(struct soft_mappings *mappings,
				    uint32_t rkey)
{
	return &mappings->slots[rkey % SOFT_MAPPINGS_MAX];
}

/* Where a request's memory is in our address space; NULL: it has to go by frames. */
static inline uint8_t *mapping_find(struct soft_mappings *mappings,
				    uint8_t opcode, uint32_t rkey,
				    uint64_t addr, uint64_t length_bytes)
{
	const struct mapping *mapping = mapping_slot(mappings, rkey);
	uint32_t right = opcode == RBX_OP_READ ? RBX_REMOTE_READ :
						 RBX_REMOTE_WRITE;
	/* Its start; more than any length if it is before the memory. */
	uint64_t start_bytes = addr - mapping->addr;

	if (mapping->rkey != rkey || mapping->state != MAPPING_READY ||
	    !key_is_valid(mappings, rkey) || !(mapping->rights & right) ||
	    length_bytes > mapping->length_bytes ||
	    start_bytes > mapping->length_bytes - length_bytes)
		return NULL;
	return mapping->base + start_bytes;
}

static void mapping_ask(struct soft_qp *qp, uint32_t rkey)
{
	struct soft_mappings *mappings = qp->mappings;
	struct mapping *mapping = mapping_slot(mappings, rkey);
	struct soft_frame frame = { .opcode = SOFT_MAP_ASK, .rkey = rkey };

	if (mapping->state != MAPPING_NONE &&
	    (mapping->rkey == rkey || mapping->state == MAPPING_ASKED ||
	     key_may_be_valid(mappings, mapping->rkey)))
		return;
	if (mappings->asked_count == SOFT_MAPS_ASKED_MAX ||
	    !key_may_be_valid(mappings, rkey))
		return;
	mapping_drop(mapping);
	mapping->rkey = rkey;
	mapping->state = MAPPING_ASKED;
	mappings->asked_count++;
	soft_output_control(qp, &frame, NULL, -1);
}

/* Questions that the peer has read and not answered. So unsent ones are never more than may
 * be asked, whatever the peer does. */
static uint32_t answers_due(const struct soft_qp *qp)
{
	return qp->mappings->asked_count - soft_output_unsent(qp, SOFT_MAP_ASK);
}

uint32_t soft_mapping_fds_due(const struct soft_qp *qp)
{
	return answers_due(qp) * SOFT_MAP_FDS;
}

/* Requests that can be done without the target. An atomic is atomic only to those of the same
 * device. */
static inline bool is_copied(const struct rbx_wr *wr)
{
	return wr->opcode <= RBX_OP_READ && !(wr->flags & RBX_WR_IMMEDIATE);
}

bool soft_mapping_covers(struct soft_qp *qp, const struct rbx_wr *wr,
			 uint32_t length_bytes)
{
	if (!qp->mappings || !is_copied(wr))
		return false;
	if (mapping_find(qp->mappings, wr->opcode, wr->rkey, wr->remote_addr,
			 length_bytes))
		return true;
	mapping_ask(qp, wr->rkey);
	return false;
}

/* The file is mapped from a page boundary; -errno. */
static int mapping_map(struct mapping *mapping, int fd,
		       const struct soft_map *map)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t lead_bytes = map->file_offset % page_bytes;
	int protection = 0;

	if (map->rights & RBX_REMOTE_READ)
		protection |= PROT_READ;
	if (map->rights & RBX_REMOTE_WRITE)
		protection |= PROT_WRITE;
	mapping->pages_bytes = map->length_bytes + lead_bytes;
	mapping->pages = mmap(NULL, mapping->pages_bytes, protection,
			      MAP_SHARED, fd,
			      (off_t)(map->file_offset - lead_bytes));
	if (mapping->pages == MAP_FAILED)
		return -errno;
	mapping->base = (uint8_t *)mapping->pages + lead_bytes;
	mapping->addr = map->addr;
	mapping->length_bytes = map->length_bytes;
	mapping->rights = map->rights;
	mapping->state = MAPPING_READY;
	return 0;
}

/* Takes the two descriptors of an answer, and maps what is not mapped yet. A descriptor that
 * was lost cannot be mapped. */
static void mapping_take(struct soft_qp *qp, struct mapping *mapping,
			 const struct soft_map *map)
{
	struct soft_mappings *mappings = qp->mappings;
	int fd = qp->fds[0], words_fd = qp->fds[1];

	qp->fd_count -= SOFT_MAP_FDS;
	memmove(qp->fds, qp->fds + SOFT_MAP_FDS,
		qp->fd_count * sizeof(*qp->fds));
	if (!mappings->words)
		mappings->words = soft_key_words_map(words_fd);
	if (mappings->words && map->length_bytes &&
	    soft_file_keeps(fd, map->file_offset + map->length_bytes))
		mapping_map(mapping, fd, map);
	soft_descriptor_close(words_fd);
	soft_descriptor_close(fd);
}

void soft_mapping_answer(struct soft_qp *qp, const struct soft_frame *frame,
			 const uint8_t *body)
{
	struct mapping *mapping;
	struct soft_map map;
	const char *wrong;

	wrong = soft_map_decode(body, &map);
	mapping = qp->mappings ? mapping_slot(qp->mappings, frame->rkey) : NULL;
	if (!wrong && (!mapping || mapping->state != MAPPING_ASKED ||
		       mapping->rkey != frame->rkey || !answers_due(qp)))
		wrong = "offers a mapping that was not asked for";
	if (!wrong && frame->status == SOFT_OK && qp->fd_count < SOFT_MAP_FDS)
		wrong = "offers a mapping without its descriptors";
	if (wrong) {
		soft_qp_cut_off(qp, wrong);
		return;
	}
	qp->mappings->asked_count--;
	mapping->state = MAPPING_REFUSED;
	if (frame->status == SOFT_OK)
		mapping_take(qp, mapping, &map);
}

/* Whether a holder of the file can do only what the rights allow. */
static bool file_grants_no_more(int fd, uint32_t rights)
{
	int seals = fcntl(fd, F_GET_SEALS);

	if (rights == RBX_REMOTE_READ)
		return seals >= 0 &&
		       seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE);
	return rights == (RBX_REMOTE_READ | RBX_REMOTE_WRITE);
}

int soft_mapping_offer(struct soft_qp *qp, uint32_t rkey, struct soft_map *map)
{
	const struct soft_mr *mr = soft_keys_find(
		qp, rkey,
		(uintptr_t)qp->device->keys.slots[rkey & (SOFT_KEY_COUNT - 1)]
			.mr.addr, 0, 0);
	uint32_t rights;

	if (!mr || mr->memory_fd < 0 || !mr->domain->shown.words)
		return -ENOENT;
	rights = mr->rights & (RBX_REMOTE_READ | RBX_REMOTE_WRITE);
	if (!file_grants_no_more(mr->memory_fd, rights))
		return -EACCES;
	*map = (struct soft_map){
		.addr = (uintptr_t)mr->mr.addr,
		.length_bytes = mr->mr.length_bytes,
		.file_offset = mr->memory_fd_offset,
		.rights = rights,
	};
	return fcntl(mr->memory_fd, F_DUPFD_CLOEXEC, 0);
}

static inline void copy_piece(uint8_t opcode, uint8_t *remote, void *local,
			      uint64_t bytes)
{
	if (opcode == RBX_OP_READ)
		memcpy(local, remote, bytes);
	else
		memcpy(remote, local, bytes);
}

/*
 * After copies, before their keys are checked again. The copies must be in memory before the
 * key is found valid, so that an owner that took the key back and then reads its memory
 * misses no write that is reported done. And bytes that were read must be older than that
 * check.
 */
static inline void copies_before_keys(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

static bool copy_wr(struct soft_qp *qp, const struct rbx_wr *wr)
{
	uint32_t i, length_bytes;
	uint8_t *remote;

	if (!is_copied(wr) || soft_wr_check(qp, wr, &length_bytes))
		return false;
	remote = mapping_find(qp->mappings, wr->opcode, wr->rkey,
			      wr->remote_addr, length_bytes);
	if (!remote || !soft_wr_may_use_local(qp, wr))
		return false;
	for (i = 0; i < wr->sge_count; i++) {
		const struct rbx_sge *sge = &wr->sges[i];

		copy_piece(wr->opcode, remote, (void *)(uintptr_t)sge->addr,
			   sge->length_bytes);
		remote += sge->length_bytes;
	}
	return true;
}

struct rbx_wr *soft_mapping_carry_out(struct soft_qp *qp, struct rbx_wr *first,
				      uint32_t room)
{
	uint32_t posted = qp->send_posted;
	struct rbx_wr *wr, *copied_end;

	for (copied_end = first; copied_end && room; room--) {
		if (!copy_wr(qp, copied_end))
			break;
		copied_end = copied_end->next;
	}
	if (copied_end == first)
		return first;
	copies_before_keys();
	for (wr = first; wr != copied_end; wr = wr->next) {
		if (!key_is_valid(qp->mappings, wr->rkey))
			break;
		if (wr->flags & RBX_WR_SIGNALED) {
			struct soft_send *send =
				&qp->sends[posted & qp->send_mask];

			send->wr_id = wr->wr_id;
			send->opcode = wr->opcode;
			soft_qp_push_send(qp, posted, 0);
		}
		posted++;
	}
	qp->mapped_count += posted - qp->send_posted;
	qp->send_started = qp->send_done = qp->send_posted = posted;
	return wr;
}

static bool copy_queued(struct soft_qp *qp, uint32_t place)
{
	const struct iovec *piece =
		&qp->send_pieces[(size_t)place * qp->max_sge];
	const struct soft_send *send = &qp->sends[place];
	struct soft_frame frame;
	uint8_t *remote;
	uint32_t i;

	soft_frame_decode((const uint8_t *)&send->header, &frame);
	remote = mapping_find(qp->mappings, send->opcode, frame.rkey,
			      frame.remote_addr, frame.length_bytes);
	if (!remote)
		return false;
	for (i = 0; i < send->piece_count; i++) {
		copy_piece(send->opcode, remote, piece[i].iov_base,
			   piece[i].iov_len);
		remote += piece[i].iov_len;
	}
	copies_before_keys();
	return key_is_valid(qp->mappings, frame.rkey);
}

void soft_mapping_carry_out_queued(struct soft_qp *qp)
{
	struct soft_send *send;

	while (qp->mappings && qp->state == SOFT_QP_CONNECTED &&
	       qp->send_done == qp->send_started &&
	       qp->partial_kind != SOFT_OUTPUT_REQUEST &&
	       qp->send_started != qp->send_posted) {
		send = &qp->sends[qp->send_started & qp->send_mask];
		if (!send->mapped)
			return;
		send->mapped = copy_queued(qp, qp->send_started &
					       qp->send_mask);
		if (!send->mapped)
			return; /* goes by frames, and will be refused */
		qp->send_started++;
		qp->mapped_count++;
		soft_send_queue_complete(qp, qp->send_started);
	}
}
