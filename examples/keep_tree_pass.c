/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One pass through all files, with many requests at once, on one thread.
 *
 * A file is cut into chunks. Chunk number n of the pass uses slot n % DEPTH of
 * a ring, so at most DEPTH are outstanding. Requests complete in any order, but
 * a hash must see a file in order; so each chunk is settled in order:
 *
 *	store	read from the file, hashed, written to the volume
 *	verify	read from the volume; settled DEPTH / 2 chunks later: decoded,
 *		hashed, and, in a rewriting pass, written again with a new key
 *
 * The slot is used again DEPTH chunks later, after its last request has completed. After the
 * last chunk of a file its hash is kept or compared.
 *
 * Completions are taken with rbx_reap(). If a request fails or a hash differs, the pass ends.
 * Then it waits for all outstanding requests, because the library borrows the buffers.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "keep_tree.h"

#define DEPTH 64
#define CHUNK_BYTES (64u << 10)
#define HANG_LIMIT_MS 60000

struct chunk {
	struct rbx_request request;
	struct kept_file *file;
	uint64_t at; /* in the file */
	uint32_t length_bytes; /* of the file; the request has whole pages */
	bool is_outstanding;
	bool is_unsettled;
};

struct mover {
	struct rbx_context *ctx;
	struct rbx_volume *volume;
	struct tree *tree;
	struct health *health;
	struct chunk chunks[DEPTH];
	char *buffers;
	struct rbx_region *region;
	EVP_MD_CTX *hash; /* of the file that is being settled */
	uint64_t next; /* chunks begun in this pass */
	uint64_t done_bytes;
};

/* ---- Requests --------------------------------------------------------------*/

static int take_completions(struct mover *mover)
{
	struct rbx_request *done[DEPTH];
	int count;

	count = rbx_reap(mover->ctx, done, DEPTH, HANG_LIMIT_MS);
	if (count <= 0)
		return complain("nothing completed for %d s: %s",
				HANG_LIMIT_MS / 1000,
				count ? strerror(-count) : "still waiting");
	for (int i = 0; i < count; i++)
		((struct chunk *)done[i]->user)->is_outstanding = false;
	return 0;
}

static int submit(struct mover *mover, struct chunk *chunk, uint8_t op)
{
	struct rbx_request *request = &chunk->request;
	int err;

	request->op = op;
	while ((err = rbx_submit(mover->volume, &request, 1)) == -EAGAIN)
		rbx_wait_room(mover->ctx, HANG_LIMIT_MS);
	if (err)
		return complain("%s", rbx_last_error());
	chunk->is_outstanding = true;
	return 0;
}

/* Waits until a chunk's request has ended, and checks its status. */
static int await(struct mover *mover, struct chunk *chunk)
{
	while (chunk->is_outstanding)
		if (take_completions(mover))
			return -1;
	if (!chunk->request.status)
		return 0;
	return complain("%s: %s at byte %" PRIu64 ": %s", chunk->file->path,
			chunk->request.op == RBX_READ ? "read" : "write",
			chunk->at, strerror(-chunk->request.status));
}

/* ---- Contents --------------------------------------------------------------*/

static void apply_key(struct chunk *chunk, uint8_t key)
{
	uint8_t *bytes = chunk->request.buf;

	for (uint32_t i = 0; i < chunk->request.length_bytes; i++)
		bytes[i] ^= key;
}

/* Adds the chunk to the hash; at the end of the file puts it into @digest.
 * Returns whether this was the end. */
static bool hash_chunk(struct mover *mover, const struct chunk *chunk,
		       uint8_t digest[SHA256_BYTES])
{
	const struct kept_file *file = chunk->file;

	if (!chunk->at)
		EVP_DigestInit_ex(mover->hash, EVP_sha256(), NULL);
	EVP_DigestUpdate(mover->hash, chunk->request.buf, chunk->length_bytes);
	mover->done_bytes += chunk->length_bytes;
	if (chunk->at + chunk->length_bytes < file->length_bytes)
		return false;
	EVP_DigestFinal_ex(mover->hash, digest, NULL);
	return true;
}

static int fill_from_file(struct chunk *chunk, int fd)
{
	char *buf = chunk->request.buf;
	uint32_t have = 0;

	memset(buf, 0, chunk->request.length_bytes);
	while (have < chunk->length_bytes) {
		ssize_t got = pread(fd, buf + have, chunk->length_bytes - have,
				    chunk->at + have);

		if (got < 0)
			return complain("cannot read %s: %s",
					chunk->file->path, strerror(errno));
		if (!got)
			return complain("%s became shorter while it was "
					"stored; start again",
					chunk->file->path);
		have += got;
	}
	return 0;
}

/* ---- A pass ----------------------------------------------------------------*/

/* The data of the chunk has been read: is it what was stored? */
static int settle(struct mover *mover, const struct pass *pass,
		  struct chunk *chunk)
{
	uint8_t digest[SHA256_BYTES];

	if (!chunk->is_unsettled)
		return 0;
	chunk->is_unsettled = false;
	if (await(mover, chunk))
		return -1;
	apply_key(chunk, pass->key);
	if (hash_chunk(mover, chunk, digest) &&
	    memcmp(digest, chunk->file->sha256, SHA256_BYTES))
		return complain("%s: what came back is not what was stored",
				chunk->file->path);
	if (pass->kind != PASS_VERIFY_AND_REWRITE)
		return 0;
	apply_key(chunk, pass->new_key);
	return submit(mover, chunk, RBX_WRITE);
}

static int begin(struct mover *mover, const struct pass *pass,
		 struct chunk *chunk, int fd)
{
	if (pass->kind != PASS_STORE) {
		chunk->is_unsettled = true;
		return submit(mover, chunk, RBX_READ);
	}
	if (fill_from_file(chunk, fd))
		return -1;
	hash_chunk(mover, chunk, chunk->file->sha256);
	apply_key(chunk, pass->key);
	return submit(mover, chunk, RBX_WRITE);
}

static int move_chunk(struct mover *mover, const struct pass *pass,
		      struct kept_file *file, uint64_t at, int fd)
{
	struct chunk *chunk = &mover->chunks[mover->next % DEPTH];
	struct chunk *older =
		&mover->chunks[(mover->next + DEPTH / 2) % DEPTH];
	uint64_t left = file->length_bytes - at;

	mover->next++;
	if (settle(mover, pass, older) || await(mover, chunk))
		return -1;
	chunk->file = file;
	chunk->at = at;
	chunk->length_bytes = left < CHUNK_BYTES ? left : CHUNK_BYTES;
	chunk->request.offset = file->offset + at;
	chunk->request.length_bytes =
		(chunk->length_bytes + PAGE_BYTES - 1) / PAGE_BYTES *
		PAGE_BYTES;
	progress_show(mover->done_bytes);
	return begin(mover, pass, chunk, fd);
}

/* An empty file has no chunk, but it has a hash. */
static int move_file(struct mover *mover, const struct pass *pass,
		     struct kept_file *file)
{
	int fd = -1, rc = 0;

	if (pass->kind == PASS_STORE) {
		fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0)
			return complain("cannot open %s: %s", file->path,
					strerror(errno));
	}
	for (uint64_t at = 0; !rc && at < file->length_bytes;
	     at += CHUNK_BYTES)
		rc = move_chunk(mover, pass, file, at, fd);
	if (fd >= 0)
		close(fd);
	return rc ? rc : health_look(mover->health);
}

/* Settles the remaining chunks, oldest first, and waits for the last writes. */
static int move_rest(struct mover *mover, const struct pass *pass)
{
	int rc = 0;

	for (uint64_t i = 0; !rc && i < DEPTH; i++)
		rc = settle(mover, pass,
			    &mover->chunks[(mover->next + i) % DEPTH]);
	for (uint64_t i = 0; !rc && i < DEPTH; i++)
		rc = await(mover, &mover->chunks[i]);
	return rc;
}

/* After a failure the library still borrows the buffers; waits for all of them. */
static void abandon(struct mover *mover)
{
	for (int i = 0; i < DEPTH; i++) {
		struct chunk *chunk = &mover->chunks[i];

		while (chunk->is_outstanding)
			if (take_completions(mover))
				_exit(1);
		chunk->is_unsettled = false;
	}
}

int mover_run(struct mover *mover, const struct pass *pass)
{
	int rc = 0;

	mover->next = 0;
	mover->done_bytes = 0;
	for (int i = 0; i < DEPTH; i++)
		mover->chunks[i].request.status = 0;
	progress_begin(pass->name, mover->tree->length_bytes);
	for (size_t i = 0; !rc && i < mover->tree->files_count; i++)
		rc = move_file(mover, pass, &mover->tree->files[i]);
	if (!rc)
		rc = move_rest(mover, pass);
	if (rc) {
		abandon(mover);
		return rc;
	}
	progress_end(pass->kind == PASS_STORE ? "stored" : "verified",
		     mover->tree->files_count, mover->done_bytes);
	return 0;
}

int mover_create(struct mover **mover_out, struct rbx_context *ctx,
		 struct rbx_volume *volume, struct tree *tree,
		 struct health *health)
{
	size_t bytes = (size_t)DEPTH * CHUNK_BYTES;
	struct mover *mover = calloc(1, sizeof(*mover));

	if (!mover)
		return complain("not enough memory");
	mover->ctx = ctx;
	mover->volume = volume;
	mover->tree = tree;
	mover->health = health;
	mover->buffers = aligned_alloc(PAGE_BYTES, bytes);
	mover->hash = EVP_MD_CTX_new();
	if (!mover->buffers || !mover->hash) {
		mover_destroy(mover);
		return complain("not enough memory");
	}
	/* So that a NIC can use the buffers as they are. */
	if (rbx_region_register(ctx, mover->buffers, bytes, &mover->region)) {
		mover_destroy(mover);
		return complain("%s", rbx_last_error());
	}
	for (int i = 0; i < DEPTH; i++) {
		struct rbx_request *request = &mover->chunks[i].request;

		request->buf = mover->buffers + (size_t)i * CHUNK_BYTES;
		request->region = mover->region;
		request->user = &mover->chunks[i];
	}
	*mover_out = mover;
	return 0;
}

void mover_destroy(struct mover *mover)
{
	if (!mover)
		return;
	if (mover->region)
		rbx_region_release(mover->region);
	EVP_MD_CTX_free(mover->hash);
	free(mover->buffers);
	free(mover);
}
