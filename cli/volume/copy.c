/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * copy.c - what import and export share: the volume that is open, a ring of requests on
 * it, and SHA-256 of what goes through.
 *
 * Chunks are submitted from the beginning of the volume to its end, and taken from the ring
 * in the same order, whatever the order in which they complete. So at any time all chunks before
 * `ended_chunks` are done, and those up to `begun_chunks` may be.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/volume/volume.h"

#define REAP_MS 100 /* then progress is shown */

/* The first server that was lost, or why the volume stopped: why requests failed. */
struct volume_fate {
	pthread_mutex_t lock; /* guards down */
	char down[256]; /* "": none */
};

static void note_event(struct rbx_volume *volume, const struct rbx_event *event, void *user)
{
	struct volume_fate *fate = user;

	pthread_mutex_lock(&fate->lock);
	if (event->kind == RBX_EVENT_STOPPED)
		snprintf(fate->down, sizeof(fate->down), "the volume is read and written no more: %s%s%s",
			 event->reason, *event->server ? ", server " : "", event->server);
	else if (event->kind == RBX_EVENT_SERVER_DOWN && !*fate->down)
		snprintf(fate->down, sizeof(fate->down), "%s: %s", event->server, event->reason);
	pthread_mutex_unlock(&fate->lock);
	volume_event_show(volume, event, NULL);
}

/* ---- Opening and closing ---------------------------------------------------------------*/

static int make_buffers(struct volume_copy *copy)
{
	size_t bytes = VOLUME_DEPTH * (size_t)VOLUME_CHUNK_BYTES;

	copy->buffers = aligned_alloc(4096, bytes);
	copy->sha256 = EVP_MD_CTX_new();
	if (!copy->buffers || !copy->sha256 ||
	    !EVP_DigestInit_ex(copy->sha256, EVP_sha256(), NULL))
		return cli_fail(copy->command, "no memory for %zu bytes of buffers, or no SHA-256",
				bytes);
	if (rbx_region_register(copy->ctx, copy->buffers, bytes, &copy->region))
		return cli_fail(copy->command, "%s", rbx_last_error());
	for (uint32_t i = 0; i < VOLUME_DEPTH; i++)
		copy->slots[i].buf = copy->buffers + i * (size_t)VOLUME_CHUNK_BYTES;
	return 0;
}

int volume_copy_open(struct volume_copy *copy, const struct cli_command *command,
		     struct rbx_context *ctx)
{
	int rc;

	*copy = (struct volume_copy){ .command = command, .ctx = ctx };
	copy->fate = calloc(1, sizeof(*copy->fate));
	if (!copy->fate)
		return cli_fail(command, "no memory");
	pthread_mutex_init(&copy->fate->lock, NULL);
	rc = make_buffers(copy);
	return rc ? rc : volume_open(command, ctx, &copy->volume, note_event, copy->fate);
}

void volume_copy_close(struct volume_copy *copy)
{
	rbx_volume_close(copy->volume);
	rbx_region_release(copy->region);
	rbx_close(copy->ctx);
	EVP_MD_CTX_free(copy->sha256);
	free(copy->buffers);
	if (copy->fate)
		pthread_mutex_destroy(&copy->fate->lock);
	free(copy->fate);
}

/* ---- The ring ---------------------------------------------------------------------------*/

static struct volume_slot *slot_of(struct volume_copy *copy, uint64_t chunk)
{
	return &copy->slots[chunk % VOLUME_DEPTH];
}

bool volume_copy_is_full(const struct volume_copy *copy)
{
	return copy->begun_chunks - copy->ended_chunks == VOLUME_DEPTH;
}

struct volume_slot *volume_copy_next(struct volume_copy *copy)
{
	return slot_of(copy, copy->begun_chunks);
}

int volume_copy_begin(struct volume_copy *copy, uint8_t op, uint32_t length_bytes)
{
	struct volume_slot *slot = volume_copy_next(copy);
	struct rbx_request *request = &slot->request;
	int err;

	slot->is_done = false;
	request->op = op;
	request->length_bytes = length_bytes;
	request->offset = copy->begun_bytes;
	request->buf = slot->buf;
	request->region = copy->region;
	request->user = slot;
	while ((err = rbx_submit(copy->volume, &request, 1)) == -EAGAIN)
		rbx_wait_room(copy->ctx, -1);
	if (err)
		return err;
	copy->begun_chunks++;
	copy->begun_bytes += length_bytes;
	return 0;
}

/* Waits until this chunk was completed. */
static struct volume_slot *wait_for(struct volume_copy *copy, uint64_t chunk)
{
	struct volume_slot *slot = slot_of(copy, chunk);
	struct rbx_request *done[VOLUME_DEPTH];

	while (!slot->is_done) {
		int count = rbx_reap(copy->ctx, done, VOLUME_DEPTH, REAP_MS);

		for (int i = 0; i < count; i++)
			((struct volume_slot *)done[i]->user)->is_done = true;
		volume_progress_show(&copy->progress, copy->ended_bytes);
	}
	return slot;
}

struct volume_slot *volume_copy_wait(struct volume_copy *copy)
{
	return wait_for(copy, copy->ended_chunks);
}

void volume_copy_end(struct volume_copy *copy)
{
	copy->ended_bytes += slot_of(copy, copy->ended_chunks)->request.length_bytes;
	copy->ended_chunks++;
}

void volume_copy_drain(struct volume_copy *copy)
{
	for (uint64_t chunk = copy->ended_chunks; chunk < copy->begun_chunks; chunk++)
		(void)wait_for(copy, chunk);
}

/* ---- What goes through ----------------------------------------------------------------*/

bool volume_copy_sum(struct volume_copy *copy, const void *data, size_t bytes)
{
	return EVP_DigestUpdate(copy->sha256, data, bytes);
}

int volume_copy_print_sum(struct volume_copy *copy, FILE *stream)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned int bytes;

	if (!EVP_DigestFinal_ex(copy->sha256, sum, &bytes)) {
		cli_fail(copy->command, "SHA-256 fails");
		return CLI_EXIT_FAILED;
	}
	for (unsigned int i = 0; i < bytes; i++)
		fprintf(stream, "%02x", sum[i]);
	fprintf(stream, "  %s\n", volume_wanted.file);
	return CLI_EXIT_OK;
}

const char *volume_copy_reason(struct volume_copy *copy, int err, char *text,
			       size_t text_bytes)
{
	const char *why = strerror(-err);

	if (err == -ENOSPC)
		why = "no server will lend memory, or the quota is reached";
	else if (err == -EIO)
		why = "it is damaged or lost at all of its servers, or another program took the volume over";
	pthread_mutex_lock(&copy->fate->lock);
	snprintf(text, text_bytes, "%s%s%s", why, *copy->fate->down ? "; " : "",
		 copy->fate->down);
	pthread_mutex_unlock(&copy->fate->lock);
	return text;
}
