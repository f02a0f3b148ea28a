/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scrub.c - see scrub.h; and rbx_volume_scrub().
 *
 * A read of a volume goes to one replica, so damage at another one may stay until there is no good
 * page left. Here each replica is read in its turn. What does not match its checksum takes the path
 * of any such read (core/slab.h): it is read again with its granules held, then page by page from
 * the others, and written anew where it was bad. So requests and rebuilds go on meanwhile.
 *
 * A replica that is not live any more when its turn comes is passed over: another one is read.
 */
#include "lib/volume/scrub.h"

#include <errno.h>
#include <stdlib.h>

#include "client/opening.h"
#include "include/rdmabox/named_volume.h"
#include "lib/outstanding.h"
#include "lib/volume/volume.h"

static void request_done(struct rbx_request *request)
{
	RBX_STORE_RELEASE((bool *)request->user, true);
}

/* Which replicas of a slab are live, as a mask. A slab that was never written has none. */
static int replicas_of(struct rbx_slab *slab, uint8_t *mask)
{
	bool blank;

	rbx_slab_lock(slab);
	*mask = slab->read_mask;
	blank = slab->blank;
	rbx_slab_unlock(slab);
	return *mask || blank ? 0 : -EIO;
}

/* Aims pieces at the range, each to be read from this slot. */
static void pieces_fill(struct rbx_volume *volume, struct rbx_request *request, uint32_t slot,
			struct rbx_piece_list *pieces)
{
	struct rbx_volume_map *map = volume->control.flow.map;
	uint32_t done_bytes = 0;
	struct rbx_node *node;

	for (node = pieces->first; node; node = node->next) {
		struct rbx_piece *piece = rbx_piece_of(node);

		piece->user = request;
		piece->kind = RBX_PIECE_READ;
		piece->fragment_flags = 0;
		piece->local_addr = (uintptr_t)request->buf + done_bytes;
		piece->lkey = 0;
		done_bytes += rbx_volume_map_aim(map, piece, request->offset + done_bytes,
						 request->length_bytes - done_bytes);
		piece->source_mask = (uint8_t)(1u << slot);
	}
}

static int replica_read(struct rbx_volume *volume, uint32_t slot, uint64_t offset, void *buf,
			uint32_t length_bytes)
{
	struct rbx_flow *flow = &volume->control.flow;
	uint32_t count = rbx_volume_map_pieces(flow->map, offset, length_bytes);
	struct rbx_piece_list pieces = { 0 };
	bool is_done = false;
	struct rbx_request request = {
		.op = RBX_READ,
		.length_bytes = length_bytes,
		.offset = offset,
		.buf = buf,
		.complete = request_done,
		.user = &is_done,
	};

	rbx_request_begin(&request);
	rbx_request_stamp(&request);
	request.reserved[1] = count;
	while (rbx_piece_pool_take(&flow->pool, count, &pieces))
		(void)rbx_volume_turn_wait(&volume->control);
	pieces_fill(volume, &request, slot, &pieces);
	rbx_flow_start(flow, &pieces);
	while (!RBX_LOAD_ACQUIRE(&is_done))
		(void)rbx_volume_turn_wait(&volume->control);
	return request.status;
}

/* In one slab. */
static int portion_scrub(struct rbx_volume *volume, uint64_t offset, void *buf,
			 uint32_t length_bytes)
{
	uint8_t mask;
	int err = replicas_of(rbx_volume_map_slab(volume->control.flow.map, offset), &mask);

	for (; mask; mask &= (uint8_t)(mask - 1)) {
		int status = replica_read(volume, (uint32_t)__builtin_ctz(mask), offset, buf,
					  length_bytes);

		err = err ? err : status;
	}
	return err;
}

/* A page that is damaged everywhere fails the piece that it is in, and other pages of that are not
 * repaired. So each page has its own turn. */
static int pages_scrub(struct rbx_volume *volume, uint64_t offset, void *buf,
		       uint32_t length_bytes, uint64_t *bad_pages)
{
	uint32_t done_bytes;
	int err = 0;

	for (done_bytes = 0; done_bytes < length_bytes; done_bytes += RBX_PAGE_BYTES) {
		int status = portion_scrub(volume, offset + done_bytes, buf, RBX_PAGE_BYTES);

		*bad_pages += status == -EIO;
		err = err ? err : status;
	}
	return err;
}

/* So many that there are pieces for, and not beyond the end of a slab. */
static uint32_t portion_bytes(const struct rbx_volume *volume, uint64_t offset,
			      uint64_t length_bytes)
{
	const struct rbx_volume_map *map = volume->control.flow.map;
	uint64_t slab_left = map->slab_mask + 1ull - (offset & map->slab_mask);
	uint64_t pieces_bytes = (uint64_t)RBX_MAX(volume->control.flow.pool.count / 2, 1u)
				<< map->shape.cell_shift;
	uint64_t most_bytes =
		RBX_MIN(RBX_MIN(pieces_bytes, slab_left), (uint64_t)RBX_SCRUB_PORTION_BYTES);
	uint64_t cell_left = map->cell_mask + 1ull - (offset & map->cell_mask);

	/* A range that begins within a cell takes one more piece. */
	return (uint32_t)RBX_MIN(length_bytes, cell_left < map->cell_mask + 1ull ? cell_left :
										     most_bytes);
}

int rbx_scrub(struct rbx_volume *volume, uint64_t offset, uint64_t length_bytes, void *buf,
	      uint64_t *bad_pages)
{
	uint32_t portion;
	int err = 0;

	for (; length_bytes && (!err || err == -EIO); length_bytes -= portion) {
		int status;

		portion = portion_bytes(volume, offset, length_bytes);
		status = portion_scrub(volume, offset, buf, portion);
		if (status == -EIO)
			status = pages_scrub(volume, offset, buf, portion, bad_pages);
		err = err ? err : status;
		offset += portion;
	}
	return err;
}

int rbx_volume_scrub(struct rbx_volume *volume, uint64_t offset, uint64_t length_bytes)
{
	uint64_t bad_pages = 0;
	void *buf;
	int err;

	if (!volume)
		return rbx_error(-EINVAL, "a volume must be given");
	err = rbx_guard_wait(volume->ctx, "rbx_volume_scrub");
	if (!err)
		err = rbx_volume_may_change(volume);
	if (!err)
		err = rbx_volume_range_check(volume, offset, length_bytes);
	if (err)
		return err;
	if (!volume->control.flow.map->shape.checksums)
		return rbx_error(-EOPNOTSUPP, "the volume has no checksums: whether its replicas differ could be told, and not which one is right");
	buf = malloc(RBX_SCRUB_PORTION_BYTES);
	if (!buf)
		return rbx_error(-ENOMEM, "out of memory");
	err = rbx_scrub(volume, offset, length_bytes, buf, &bad_pages);
	free(buf);
	if (err == -EIO)
		return rbx_error(err, "pages that are damaged at all servers, or that no server has: %llu; write them again",
				 (unsigned long long)bad_pages);
	return err ? rbx_error(err, "%s", rbx_status_text(err)) : 0;
}
