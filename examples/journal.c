/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * journal.c - a journal whose commit is never stored before its records: completion
 * callbacks, a plug and a fence.
 *
 *	rdmabox serve --listen 127.0.0.1:7471 --memory 1G &
 *	cc journal.c -o journal $(pkg-config --cflags --libs rdmabox) -pthread
 *	./journal 127.0.0.1:7471
 *
 * A transaction consists of RECORDS records and a commit. They are submitted one by one under
 * a plug, so they leave as one batch: the records, which are neighbours, become one work
 * request. The commit has RBX_FENCE, so it starts when the records have ended. A fence orders
 * requests to the same peer. Records and commit are in one slab, so they go to the same
 * peers.
 *
 * A fence does not check the status of earlier requests. So the program counts a transaction
 * as committed only if all its requests ended with 0.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rdmabox/rdmabox.h>

#define TRANSACTIONS 100
#define RECORDS 15 /* with the commit 64 KiB, the smallest slab */
#define RECORD_BYTES 4096 /* a page: writes to parts of one page wait for each other */
#define JOURNAL_OFFSET RECORD_BYTES /* the commit is before it, at 0 */

struct transaction {
	char records[RECORDS][RECORD_BYTES];
	char commit[RECORD_BYTES];
	struct rbx_request requests[RECORDS + 1];
	unsigned int ended_count;
	int status; /* the first that is not 0 */
	pthread_mutex_t lock;
	pthread_cond_t ended;
};

/* Runs on a poller's thread: it must not wait long. */
static void request_ended(struct rbx_request *request)
{
	struct transaction *transaction = request->user;

	pthread_mutex_lock(&transaction->lock);
	if (request->status != 0 && transaction->status == 0)
		transaction->status = request->status;
	if (++transaction->ended_count == RECORDS + 1)
		pthread_cond_signal(&transaction->ended);
	pthread_mutex_unlock(&transaction->lock);
}

static int submit_one(struct rbx_volume *volume, struct transaction *transaction,
		      unsigned int index, char *buf, uint64_t offset, uint8_t flags)
{
	struct rbx_request *request = &transaction->requests[index];

	request->op = RBX_WRITE;
	request->flags = flags;
	request->buf = buf;
	request->length_bytes = RECORD_BYTES;
	request->offset = offset;
	request->complete = request_ended;
	request->user = transaction;
	return rbx_submit(volume, &request, 1);
}

/* Returns 0 if all replicas have the transaction. */
static int commit(struct rbx_context *ctx, struct rbx_volume *volume,
		  struct transaction *transaction, unsigned int number)
{
	unsigned int submitted = 0;
	int err = 0;

	transaction->ended_count = 0;
	transaction->status = 0;
	rbx_plug(ctx);
	for (unsigned int i = 0; i < RECORDS && err == 0; i++) {
		snprintf(transaction->records[i], RECORD_BYTES, "transaction %u, record %u",
			 number, i);
		err = submit_one(volume, transaction, i, transaction->records[i],
				 JOURNAL_OFFSET + i * RECORD_BYTES, 0);
		submitted += err == 0;
	}
	snprintf(transaction->commit, RECORD_BYTES, "committed %u", number);
	if (err == 0) {
		err = submit_one(volume, transaction, RECORDS, transaction->commit, 0,
				 RBX_FENCE);
		submitted += err == 0;
	}
	rbx_unplug(ctx);

	/* Requests that were not submitted never end. */
	pthread_mutex_lock(&transaction->lock);
	transaction->ended_count += RECORDS + 1 - submitted;
	while (transaction->ended_count < RECORDS + 1)
		pthread_cond_wait(&transaction->ended, &transaction->lock);
	pthread_mutex_unlock(&transaction->lock);
	return err ? err : transaction->status;
}

static int show_last(struct rbx_volume *volume)
{
	char record[RECORD_BYTES], committed[RECORD_BYTES];
	uint64_t last = JOURNAL_OFFSET + (RECORDS - 1) * RECORD_BYTES;

	if (rbx_read(volume, committed, sizeof(committed), 0) ||
	    rbx_read(volume, record, sizeof(record), last))
		return -1;
	printf("%s; its last record: %s\n", committed, record);
	return 0;
}

int main(int argc, char **argv)
{
	static struct transaction transaction = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.ended = PTHREAD_COND_INITIALIZER,
	};
	struct rbx_context *ctx = NULL;
	struct rbx_volume *volume = NULL;
	struct rbx_stats stats;
	int failed;

	if (argc != 2) {
		fprintf(stderr, "usage: journal SERVER:PORT[,SERVER:PORT...]\n");
		return 2;
	}
	failed = rbx_open(&ctx, NULL) ||
		 rbx_volume_open(ctx, &volume, argv[1], 1 << 20, NULL);
	for (unsigned int i = 1; !failed && i <= TRANSACTIONS; i++)
		failed = commit(ctx, volume, &transaction, i);
	failed = failed || show_last(volume);
	if (failed) {
		fprintf(stderr, "journal: %s\n", rbx_last_error());
	} else {
		rbx_stats_get(ctx, &stats);
		printf("%llu requests in %llu work requests\n",
		       (unsigned long long)stats.requests,
		       (unsigned long long)stats.work_requests);
	}
	rbx_volume_close(volume);
	rbx_close(ctx);
	return failed != 0;
}
