/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the files, and decides where each is kept: one after the other in the volume, sorted
 * by path, each from the beginning of a page.
 */
#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "keep_tree.h"

static int add_file(struct tree *tree, const FTSENT *entry)
{
	struct kept_file *file;

	/* The array grows at each power of two. */
	if (!(tree->files_count & (tree->files_count - 1))) {
		size_t room = tree->files_count ? 2 * tree->files_count : 1;

		file = realloc(tree->files, room * sizeof(*file));
		if (!file)
			return complain("not enough memory");
		tree->files = file;
	}
	file = &tree->files[tree->files_count];
	*file = (struct kept_file){
		.path = strdup(entry->fts_path),
		.length_bytes = entry->fts_statp->st_size,
	};
	if (!file->path)
		return complain("not enough memory");
	tree->files_count++;
	return 0;
}

static int walk(struct tree *tree, FTS *walker)
{
	FTSENT *entry;

	while ((entry = fts_read(walker))) {
		switch (entry->fts_info) {
		case FTS_F:
			if (add_file(tree, entry))
				return -1;
			break;
		case FTS_DNR:
		case FTS_ERR:
		case FTS_NS:
			return complain("cannot look into %s: %s; give a "
					"directory that this user can read",
					entry->fts_path,
					strerror(entry->fts_errno));
		}
	}
	return 0;
}

static int compare_paths(const void *a, const void *b)
{
	const struct kept_file *one = a, *other = b;

	return strcmp(one->path, other->path);
}

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* Places the files, one after the other. */
static void place(struct tree *tree)
{
	qsort(tree->files, tree->files_count, sizeof(tree->files[0]),
	      compare_paths);
	for (size_t i = 0; i < tree->files_count; i++) {
		struct kept_file *file = &tree->files[i];

		file->offset = tree->volume_bytes;
		tree->volume_bytes += round_up(file->length_bytes);
		tree->length_bytes += file->length_bytes;
	}
	if (!tree->volume_bytes)
		tree->volume_bytes = PAGE_BYTES;
}

int tree_find(struct tree *tree, char *directory)
{
	char *const roots[] = { directory, NULL };
	FTS *walker = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	int rc;

	if (!walker)
		return complain("cannot look into %s: %s", directory,
				strerror(errno));
	rc = walk(tree, walker);
	fts_close(walker);
	if (rc)
		return rc;
	if (!tree->files_count)
		return complain("no file below %s; give another directory",
				directory);
	place(tree);
	return 0;
}

void tree_free(struct tree *tree)
{
	for (size_t i = 0; i < tree->files_count; i++)
		free(tree->files[i].path);
	free(tree->files);
}
