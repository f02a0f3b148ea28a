/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sync.c - rbx_read(), rbx_write(), rbx_readv() and rbx_writev(): submit one request and
 * wait.
 *
 * If a transfer needs more pieces than half of the pool it is done in portions, one after
 * another. Each portion is long enough to keep the servers busy.
 */
#include "client/named.h"
#include "lib/poller/plug.h"
#include "lib/poller/waiting.h"
#include "lib/volume/volume.h"

/* The longest portion. A portion also takes at most half of the pieces. */
#define PORTION_BYTES (16u << 20)

/* How long to wait before trying a full pool again, if nothing reports room. */
#define ROOM_WAIT_MS 10

struct waiter {
	struct rbx_request request;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done;
};

static void waiter_done(struct rbx_request *request)
{
	struct waiter *waiter = request->user;

	pthread_mutex_lock(&waiter->lock);
	waiter->done = true;
	pthread_cond_signal(&waiter->changed);
	pthread_mutex_unlock(&waiter->lock);
}

static bool waiter_is_done(struct waiter *waiter)
{
	bool done;

	pthread_mutex_lock(&waiter->lock);
	done = waiter->done;
	pthread_mutex_unlock(&waiter->lock);
	return done;
}

static void waiter_wait(struct rbx_context *ctx, struct waiter *waiter)
{
	struct rbx_waiting waiting = { 0 };

	rbx_plug_flush();
	/* If the program polls, this thread has to poll. */
	while (!rbx_context_options(ctx)->pollers && !waiter_is_done(waiter))
		rbx_waiting_poll(&waiting, ctx);
	pthread_mutex_lock(&waiter->lock);
	while (!waiter->done)
		pthread_cond_wait(&waiter->changed, &waiter->lock);
	pthread_mutex_unlock(&waiter->lock);
}

static int submit_wait(struct rbx_volume *volume, struct rbx_request *request)
{
	int err;

	while ((err = rbx_submit(volume, &request, 1)) == -EAGAIN)
		(void)rbx_wait_room(volume->ctx, ROOM_WAIT_MS);
	return err;
}

/* Whether a slab is lost, or was lost and has not been wholly written since. */
static bool slab_lacks_bytes(const struct rbx_slab *slab, bool *is_lost)
{
	bool lacks;

	rbx_slab_lock(slab);
	*is_lost = rbx_slab_health(slab) == RBX_SLAB_DEAD;
	lacks = *is_lost || slab->has_holes;
	rbx_slab_unlock(slab);
	return lacks;
}

/* Makes the error of a request that ended with -EIO. */
static int request_lost(struct rbx_volume *volume, const struct rbx_request *wanted,
			const char *what)
{
	const struct rbx_volume_map *map = volume->control.flow.map;
	uint32_t shift = map->shape.slab_shift;
	uint64_t slab = wanted->offset >> shift;
	uint64_t last = (wanted->offset + wanted->length_bytes - 1) >> shift;
	bool is_lost;

	for (; slab <= last; slab++) {
		if (!slab_lacks_bytes(rbx_slab_at(&map->shape, (uint32_t)slab),
				      &is_lost))
			continue;
		return rbx_error(-EIO, "%s: slab %llu has lost all its replicas%s",
				 what, (unsigned long long)slab,
				 is_lost ? "; what was in it is gone, and writes need a server with room: rbx_volume_add_server()" :
					   " before, and pages not written whole since are gone");
	}
	return rbx_error(-EIO, "%s: %s", what, rbx_status_text(-EIO));
}

static int request_failed(struct rbx_volume *volume, const struct rbx_request *wanted,
			  int status)
{
	char what[64];

	snprintf(what, sizeof(what), "%s of %u bytes at %llu failed",
		 wanted->op == RBX_READ ? "read" : "write", wanted->length_bytes,
		 (unsigned long long)wanted->offset);
	if (volume->control.named && rbx_named_stop_error(volume->control.named, status, what))
		return status;
	if (status == -EIO)
		return request_lost(volume, wanted, what);
	return rbx_error(status, "%s: %s", what, rbx_status_text(status));
}

/* Submits a request like *wanted, and waits for it. */
static int request_transfer(struct rbx_volume *volume,
			    const struct rbx_request *wanted)
{
	struct waiter waiter = {
		.request = *wanted,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
	};
	int err;

	waiter.request.flags = RBX_URGENT; /* a thread waits for it */
	waiter.request.complete = waiter_done;
	waiter.request.user = &waiter;
	err = submit_wait(volume, &waiter.request);
	if (err)
		return err;
	waiter_wait(volume->ctx, &waiter);
	return waiter.request.status ?
		       request_failed(volume, wanted, waiter.request.status) :
		       0;
}

static uint32_t portion_bytes(const struct rbx_volume *volume)
{
	uint64_t cells = volume->control.flow.pool.count / 2;

	return (uint32_t)RBX_MIN(cells << volume->control.flow.map->shape.cell_shift,
				 (uint64_t)PORTION_BYTES);
}

static int transfer(struct rbx_volume *volume, enum rbx_op op, void *buf,
		    size_t length, uint64_t offset)
{
	uint32_t portion;
	int err;

	if (!volume || !buf)
		return rbx_error(-EINVAL, "a volume and a buffer must be given");
	err = rbx_guard_wait(volume->ctx,
			     op == RBX_READ ? "rbx_read" : "rbx_write");
	if (err)
		return err;
	/* Checks the whole range before any portion is sent. */
	err = rbx_volume_range_check(volume, offset, length);
	if (err)
		return err;
	for (; length; length -= portion) {
		portion = (uint32_t)RBX_MIN(length,
					    (size_t)portion_bytes(volume));
		err = request_transfer(volume, &(struct rbx_request){
						       .op = (uint8_t)op,
						       .length_bytes = portion,
						       .offset = offset,
						       .buf = buf,
					       });
		if (err)
			return err;
		buf = (char *)buf + portion;
		offset += portion;
	}
	return 0;
}

int rbx_read(struct rbx_volume *volume, void *buf, size_t length,
	     uint64_t offset)
{
	return transfer(volume, RBX_READ, buf, length, offset);
}

int rbx_write(struct rbx_volume *volume, const void *buf, size_t length,
	      uint64_t offset)
{
	/* A write only reads its buffer. */
	return transfer(volume, RBX_WRITE, (void *)buf, length, offset);
}

/* Leaves out empty buffers. Returns the sum of the bytes, which may be too many. */
static uint64_t segments_make(const struct iovec *iov, int count,
			      struct rbx_segment *segments,
			      uint32_t *segments_count)
{
	uint64_t sum_bytes = 0;
	int i;

	*segments_count = 0;
	for (i = 0; i < count && sum_bytes <= UINT32_MAX; i++) {
		if (!iov[i].iov_len)
			continue;
		sum_bytes += RBX_MIN(iov[i].iov_len, (size_t)1 << 32);
		segments[(*segments_count)++] = (struct rbx_segment){
			.addr = iov[i].iov_base,
			.length_bytes = (uint32_t)iov[i].iov_len,
		};
	}
	return sum_bytes;
}

static int transfer_v(struct rbx_volume *volume, enum rbx_op op,
		      const struct iovec *iov, int count, uint64_t offset)
{
	const char *call = op == RBX_READ ? "rbx_readv" : "rbx_writev";
	struct rbx_segment segments[RBX_SEGMENTS_MAX];
	struct rbx_request wanted = { .op = (uint8_t)op,
				      .offset = offset,
				      .segments = segments };
	uint64_t length_bytes;
	int err;

	if (!volume || !iov || count < 1 || count > RBX_SEGMENTS_MAX)
		return rbx_error(-EINVAL, "%s takes a volume and 1 to %u buffers",
				 call, RBX_SEGMENTS_MAX);
	err = rbx_guard_wait(volume->ctx, call);
	if (err)
		return err;
	length_bytes = segments_make(iov, count, segments,
				     &wanted.segments_count);
	if (length_bytes > UINT32_MAX)
		return rbx_error(-EINVAL, "%s: buffers of 4 GiB or more together",
				 call);
	wanted.length_bytes = (uint32_t)length_bytes;
	return request_transfer(volume, &wanted);
}

int rbx_readv(struct rbx_volume *volume, const struct iovec *iov, int count,
	      uint64_t offset)
{
	return transfer_v(volume, RBX_READ, iov, count, offset);
}

int rbx_writev(struct rbx_volume *volume, const struct iovec *iov, int count,
	       uint64_t offset)
{
	return transfer_v(volume, RBX_WRITE, iov, count, offset);
}
