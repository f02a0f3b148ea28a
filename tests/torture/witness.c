/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * witness.c - reads and writes a named volume, and knows after its death what that must hold.
 *
 *	witness SERVERS NAME LEDGER SEED
 *
 * It takes the volume from whoever has it, reads all of it and compares it with the ledger
 * (ledger.h), and copies the ledger as it is then to LEDGER.opened. Then it reads and writes pages
 * at random until it is killed, or closes the volume after a SIGTERM. It writes lines:
 *
 *	open DOUBTS		all pages are right; so many were under way when the last one died
 *	wrong PAGE WORD ...	a page holds what it must not: the proof has failed
 *	error OP PAGE STATUS	a request has failed; perhaps that can be explained
 *	event NAME SERVER	of the volume
 *	status WHOLE DONE	ten times a second: whether all replicas are there, requests done
 *	end ERROR		after a SIGTERM: what rbx_volume_close() has said
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdmabox/rdmabox.h>

#include "ledger.h"

#define DEPTH 24u
#define PAGES_MAX 8u /* of a request */
#define STATUS_NS 100000000ull
#define ERRORS_TOLD_MAX 20u /* in one status period */

struct slot {
	struct rbx_request request;
	uint64_t page;
	uint32_t pages_count;
	bool is_busy;
	unsigned char *buf;
};

struct witness {
	struct rbx_context *ctx;
	struct rbx_volume *volume;
	struct ledger ledger;
	const char *ledger_path;
	struct slot slots[DEPTH];
	uint32_t busy_count;
	bool is_checking; /* all pages are read once, one after another */
	uint64_t next_page; /* to check */
	uint64_t doubts_count;
	uint64_t random;
	uint64_t done_count;
	uint64_t told_ns;
	uint32_t errors_told;
	bool has_error; /* since the last round */
};

static volatile sig_atomic_t is_to_end;

static void end_soon(int signal)
{
	(void)signal;
	is_to_end = 1;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static uint64_t random_next(struct witness *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

static void event(struct rbx_volume *volume, const struct rbx_event *event, void *user)
{
	(void)volume;
	(void)user;
	printf("event %s: %s %s\n", rbx_event_name(event->kind), event->server, event->reason);
}

/* ---- One request ------------------------------------------------------------------------ */

static bool overlaps(const struct witness *w, uint64_t page, uint32_t pages_count)
{
	for (uint32_t i = 0; i < DEPTH; i++)
		if (w->slots[i].is_busy && w->slots[i].page < page + pages_count &&
		    page < w->slots[i].page + w->slots[i].pages_count)
			return true;
	return false;
}

/* Sets the pages of the next request. Returns whether there is one now. */
static bool choose(struct witness *w, struct slot *slot)
{
	uint64_t all = w->ledger.pages_count, page = w->next_page;
	uint32_t count = PAGES_MAX;

	if (!w->is_checking) {
		count = random_next(w) % 4 ? 1 : 1 + (uint32_t)(random_next(w) % PAGES_MAX);
		page = random_next(w) % (all - count);
	} else if (page + count > all) {
		count = (uint32_t)(all - page);
	}
	if (!count || overlaps(w, page, count))
		return false;
	if (w->is_checking)
		w->next_page += count;
	slot->page = page;
	slot->pages_count = count;
	slot->request.op = w->is_checking || random_next(w) % 2 ? RBX_READ : RBX_WRITE;
	return true;
}

static void submit(struct witness *w, struct slot *slot)
{
	struct rbx_request *request = &slot->request;
	int err;

	request->buf = slot->buf;
	request->user = slot;
	request->offset = slot->page * LEDGER_PAGE_BYTES;
	request->length_bytes = slot->pages_count * LEDGER_PAGE_BYTES;
	for (uint32_t i = 0; i < slot->pages_count && request->op == RBX_WRITE; i++)
		ledger_write(&w->ledger, slot->page + i, slot->buf + i * LEDGER_PAGE_BYTES);
	while ((err = rbx_submit(w->volume, &request, 1)) == -EAGAIN)
		rbx_wait_room(w->ctx, -1);
	if (err) {
		printf("wrong %llu: submit ends with %d: %s\n", (unsigned long long)slot->page, err,
		       rbx_last_error());
		exit(1);
	}
	slot->is_busy = true;
	w->busy_count++;
}

static void failed(struct witness *w, const struct slot *slot)
{
	w->has_error = true;
	if (w->errors_told++ < ERRORS_TOLD_MAX)
		printf("error %s %llu %d\n", slot->request.op == RBX_READ ? "read" : "write",
		       (unsigned long long)slot->page, slot->request.status);
}

static void was_read(struct witness *w, uint64_t page, const void *buf)
{
	const struct ledger_line *line = &w->ledger.lines[page];
	uint64_t wrong;

	if (!ledger_is_right(&w->ledger, page, buf, &wrong)) {
		printf("wrong %llu %016llx, not from %u to %u (%u)%s\n", (unsigned long long)page,
		       (unsigned long long)wrong, line->acknowledged, line->newest, line->issued,
		       w->is_checking ? " after an open" : "");
		exit(1);
	}
	if (!w->is_checking)
		return;
	w->doubts_count += line->acknowledged != line->newest;
	ledger_settle(&w->ledger, page, buf);
}

/* Returns whether it is to be sent again. */
static bool ended(struct witness *w, struct slot *slot)
{
	slot->is_busy = false;
	w->busy_count--;
	w->done_count++;
	if (slot->request.status) {
		failed(w, slot);
		return w->is_checking;
	}
	for (uint32_t i = 0; i < slot->pages_count; i++)
		if (slot->request.op == RBX_READ)
			was_read(w, slot->page + i, slot->buf + i * LEDGER_PAGE_BYTES);
		else
			ledger_acknowledged(&w->ledger, slot->page + i);
	return false;
}

/* ---- All of them ------------------------------------------------------------------------- */

static void tell(struct witness *w)
{
	struct rbx_volume_status status;

	if (now_ns() - w->told_ns < STATUS_NS)
		return;
	w->told_ns = now_ns();
	w->errors_told = 0;
	rbx_volume_status(w->volume, &status);
	printf("status %d %llu\n",
	       status.slabs_whole + status.slabs_blank == status.slabs && status.slabs_blank == 0,
	       (unsigned long long)w->done_count);
}

static void reap(struct witness *w)
{
	struct rbx_request *done[DEPTH];
	struct timespec pause = { .tv_nsec = 20000000 };
	int count = rbx_reap(w->ctx, done, DEPTH, 50);

	w->has_error = false;
	for (int i = 0; i < count; i++)
		if (ended(w, done[i]->user) && !is_to_end)
			submit(w, done[i]->user);
	if (w->has_error) /* a few at a time */
		nanosleep(&pause, NULL);
	tell(w);
}

/* Until all was checked, or the end. */
static void run(struct witness *w)
{
	while (!is_to_end && !(w->is_checking && w->next_page == w->ledger.pages_count)) {
		for (uint32_t i = 0; i < DEPTH; i++)
			if (!w->slots[i].is_busy && choose(w, &w->slots[i]))
				submit(w, &w->slots[i]);
		reap(w);
	}
	while (w->busy_count)
		reap(w);
}

/* What was found, before anything is written. */
static int keep_opened(const struct witness *w)
{
	size_t bytes = w->ledger.pages_count * sizeof(struct ledger_line);
	char path[4096];
	FILE *file;
	int err;

	snprintf(path, sizeof(path), "%s.opened", w->ledger_path);
	file = fopen(path, "w");
	if (!file)
		return -errno;
	err = fwrite(w->ledger.lines, 1, bytes, file) == bytes ? 0 : -EIO;
	return fclose(file) ? -errno : err;
}

static int begin(struct witness *w, const char *servers, const char *name)
{
	struct rbx_volume_options options;
	struct rbx_options library;
	int err;

	rbx_options_defaults(&library);
	rbx_volume_options_defaults(&options);
	library.peer_timeout_ms = 2000;
	library.insecure = 1; /* the servers may be beyond loopback */
	options.name = name;
	options.take_over = 1;
	options.event = event;
	err = rbx_open(&w->ctx, &library);
	if (!err)
		err = rbx_volume_open(w->ctx, &w->volume, servers, 0, &options);
	if (err) {
		printf("refused %d %s\n", err, rbx_last_error());
		return err;
	}
	for (uint32_t i = 0; i < DEPTH; i++) {
		w->slots[i].buf = aligned_alloc(LEDGER_PAGE_BYTES, PAGES_MAX * LEDGER_PAGE_BYTES);
		if (!w->slots[i].buf)
			return -ENOMEM;
	}
	return ledger_open(&w->ledger, w->ledger_path,
			   rbx_volume_size(w->volume) / LEDGER_PAGE_BYTES);
}

int main(int argc, char **argv)
{
	struct witness w = { .is_checking = true };

	if (argc != 5) {
		fprintf(stderr, "usage: witness SERVERS NAME LEDGER SEED\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGTERM, end_soon);
	w.ledger_path = argv[3];
	w.random = strtoull(argv[4], NULL, 10) | 1;
	if (begin(&w, argv[1], argv[2]))
		return 3;
	run(&w);
	if (!is_to_end && keep_opened(&w))
		return 1;
	printf("open %llu\n", (unsigned long long)w.doubts_count);
	w.is_checking = false;
	run(&w);
	printf("end %d\n", rbx_volume_close(w.volume));
	rbx_close(w.ctx);
	ledger_close(&w.ledger);
	return 0;
}
