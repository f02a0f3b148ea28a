/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keep_tree.h - the parts of keep-tree.
 *
 *	keep_tree.c		options, and the order of things
 *	keep_tree_files.c	which files there are, and where each is kept
 *	keep_tree_pass.c	one way through all files: store or verify
 *	keep_tree_health.c	servers that are lost, and the spare
 *	keep_tree_progress.c	the bar
 */
#ifndef KEEP_TREE_H
#define KEEP_TREE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdmabox/rdmabox.h>

#define PAGE_BYTES 4096u
#define SHA256_BYTES 32

/* Prints "keep-tree: ..." on stderr. Returns -1. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- Files ----------------------------------------------------------------- */

struct kept_file {
	char *path;
	uint64_t length_bytes;
	uint64_t offset; /* in the volume, a multiple of a page */
	uint8_t sha256[SHA256_BYTES]; /* of what was stored */
};

struct tree {
	struct kept_file *files; /* by path */
	size_t files_count;
	uint64_t length_bytes; /* of all files */
	uint64_t volume_bytes; /* with each file rounded up to pages */
};

/* Finds all regular files below a directory; links are not followed. Returns 0 or -1. */
int tree_find(struct tree *tree, char *directory);
void tree_free(struct tree *tree);

/* ---- Health ----------------------------------------------------------------*/

struct health {
	struct rbx_volume *volume;
	const char *spare; /* NULL: none left */
	pthread_mutex_t lock; /* guards what follows; held only for a copy */
	unsigned int events_count; /* events so far */
	unsigned int printed_count;
	bool is_server_lost; /* since health_heal() */
	bool is_data_lost;
	bool is_stuck;
	char lines[16][200]; /* the last events */
};

void health_init(struct health *health, const char *spare);

/* For rbx_volume_options. Called by a thread of the library. */
void health_note(struct rbx_volume *volume, const struct rbx_event *event,
		 void *health);

/* Prints new events, and adds the spare if a server was lost. */
int health_look(struct health *health);

/* Waits until every slab has all its replicas, if a server was lost and there is a spare.
 * Returns 1 if there was something to rebuild, 0, or -1. */
int health_heal(struct health *health);

/* ---- Passes ----------------------------------------------------------------*/

/* The stored data is the file with every byte XORed with a key. Each rewrite changes the key,
 * so a replica that missed a rewrite is always noticed. */
enum pass_kind { PASS_STORE, PASS_VERIFY, PASS_VERIFY_AND_REWRITE };

struct pass {
	enum pass_kind kind;
	const char *name;
	uint8_t key; /* of the stored data */
	uint8_t new_key; /* PASS_VERIFY_AND_REWRITE */
};

struct mover;

int mover_create(struct mover **mover, struct rbx_context *ctx,
		 struct rbx_volume *volume, struct tree *tree,
		 struct health *health);
void mover_destroy(struct mover *mover);

/* Handles all files once. Returns 0, or -1 after a message about the failure. */
int mover_run(struct mover *mover, const struct pass *pass);

/* ---- Progress --------------------------------------------------------------*/

void progress_begin(const char *name, uint64_t total_bytes);
void progress_show(uint64_t done_bytes);
/* Prints "NAME FILES files, BYTES bytes, RATE MB/s" on stdout. */
void progress_end(const char *did, size_t files_count, uint64_t done_bytes);

#endif
