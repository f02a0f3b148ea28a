/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* storm_io.c - see storm_io.h. */
#include "tests/core/storm_io.h"

void storm_io_begin(struct storm_io *io, struct host *host, uint64_t size_bytes)
{
	memset(io, 0, sizeof(*io));
	io->host = host;
	history_init(&io->history, size_bytes);
}

void storm_io_end(struct storm_io *io)
{
	history_free(&io->history);
}

/* ---- Beginning --------------------------------------------------------------*/

static struct storm_request *find_idle(struct storm_io *io)
{
	for (uint32_t i = 0; i < STORM_REQUESTS; i++)
		if (!io->requests[i].is_busy)
			return &io->requests[i];
	return NULL;
}

static void note_begin(struct storm_io *io, struct storm_request *request)
{
	if (!request->is_read) {
		request->number = history_write_begin(&io->history, request->offset,
						      HOST_CELL_BYTES, request->buf);
		return;
	}
	memset(request->buf, 0xee, sizeof(request->buf));
	history_read_begin(&io->history, request->offset, HOST_CELL_BYTES,
			   request->floors);
}

void storm_io_start(struct storm_io *io, bool is_read, uint32_t slab,
		    uint32_t cell)
{
	struct rbx_flow *flow = &io->host->flow;
	struct storm_request *request = find_idle(io);
	struct rbx_piece_list pieces = { 0 };
	struct rbx_piece *piece;

	if (!request || rbx_piece_pool_take(&flow->pool, 1, &pieces))
		return;
	request->is_busy = true;
	request->is_read = is_read;
	request->slab = slab;
	request->offset = (uint64_t)slab * HOST_SLAB_BYTES + cell * HOST_CELL_BYTES;
	note_begin(io, request);
	piece = rbx_piece_of(pieces.first);
	piece->kind = is_read ? RBX_PIECE_READ : RBX_PIECE_WRITE;
	piece->fragment_flags = 0;
	piece->user = request;
	piece->local_addr = host_device_addr(request->buf);
	assert_int_equal(rbx_volume_map_aim(flow->map, piece, request->offset,
					    HOST_CELL_BYTES),
			 HOST_CELL_BYTES);
	rbx_flow_start(flow, &pieces);
}

/* ---- Ending -----------------------------------------------------------------*/

/* A write may also find no memory, or not in time. */
static bool may_fail(const struct storm_io *io,
		     const struct storm_request *request, int32_t status)
{
	if (io->may_be_lost[request->slab] && status == -EIO)
		return true;
	if (status == -EFAULT)
		return io->faults_here;
	if (status == -ECANCELED)
		return io->closes && !request->is_read;
	return (status == -ENOSPC || status == -ETIMEDOUT) && !request->is_read &&
	       io->host->flow.map->shape.on_demand;
}

static void read_over(struct storm_io *io, struct storm_request *request,
		      const struct rbx_piece *piece)
{
	if (piece->status)
		return;
	if (piece->reads_zeros)
		memset(request->buf, 0, sizeof(request->buf));
	assert_true(history_read_is_legal(&io->history, request->offset,
					  HOST_CELL_BYTES, request->floors,
					  request->buf));
}

static void request_over(struct storm_io *io, struct storm_request *request,
			 const struct rbx_piece *piece)
{
	assert_true(request->is_busy);
	request->is_busy = false;
	if (piece->status && !may_fail(io, request, piece->status))
		fail_msg("a %s of slab %u ends with %d",
			 request->is_read ? "read" : "write", request->slab,
			 piece->status);
	if (request->is_read)
		read_over(io, request, piece);
	else if (piece->status)
		history_write_over(&io->history, request->number);
	else
		history_write_end(&io->history, request->number, true);
}

void storm_io_reap(struct storm_io *io)
{
	struct rbx_piece *piece;

	while ((piece = rbx_piece_list_take(&io->host->ended))) {
		struct rbx_piece_list one = { 0 };

		request_over(io, piece->user, piece);
		rbx_piece_list_add(&one, piece);
		(void)rbx_piece_pool_give(&io->host->flow.pool, &one);
	}
}

/* ---- What there is -----------------------------------------------------------*/

uint32_t storm_io_busy(const struct storm_io *io)
{
	uint32_t i, count = 0;

	for (i = 0; i < STORM_REQUESTS; i++)
		count += io->requests[i].is_busy;
	return count;
}

bool storm_io_is_busy_at(const struct storm_io *io, uint32_t slab)
{
	for (uint32_t i = 0; i < STORM_REQUESTS; i++)
		if (io->requests[i].is_busy && io->requests[i].slab == slab)
			return true;
	return false;
}

void storm_io_discard(struct storm_io *io, uint32_t slab)
{
	uint64_t offset = (uint64_t)slab * HOST_SLAB_BYTES;

	assert_false(storm_io_is_busy_at(io, slab));
	rbx_flow_discard(&io->host->flow, offset, HOST_SLAB_BYTES);
	history_discard(&io->history, offset, HOST_SLAB_BYTES);
}

void storm_io_judge(struct storm_io *io, const struct rbx_slab *slab,
		    const uint8_t *memory)
{
	uint64_t offset = (uint64_t)rbx_slab_index(slab) * HOST_SLAB_BYTES;
	uint64_t floors[RBX_PAGE_BYTES / HISTORY_UNIT_BYTES];
	uint32_t at;

	for (at = 0; at < HOST_SLAB_BYTES; at += RBX_PAGE_BYTES) {
		if (slab->has_holes &&
		    !rbx_lost_pages_may_read(rbx_slab_pages(slab), at,
					     RBX_PAGE_BYTES))
			continue;
		history_read_begin(&io->history, offset + at, RBX_PAGE_BYTES,
				   floors);
		assert_true(history_read_is_legal(&io->history, offset + at,
						  RBX_PAGE_BYTES, floors,
						  memory + at));
	}
}
