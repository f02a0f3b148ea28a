/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * key_words.c - shows peers on this host which keys of a domain are valid.
 *
 * A peer that copies through its own mapping of our memory has to see when its key ends. So
 * each domain has a memory file of words. A peer gets it with the first memory that it may
 * map, and not before: a peer without a key in the domain does not see it.
 *
 * Any holder of the descriptor of a memory file can open it again for writing, by its name in
 * /proc, whatever the mode of the descriptor and whoever owns it. So the file is sealed as
 * soon as its owner has mapped it: from then on nobody can make a writable mapping of it,
 * write to it, change its size or punch holes in it. And since data that others can see
 * should not be trusted, the owner itself never reads these words: it checks its own copies
 * (keys.c).
 *
 * Without these seals (Linux before 5.1) nothing is shared, and peers on this host use frames
 * as all others do.
 */
#include "key_words.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int soft_key_words_open(struct soft_key_words *words)
{
	void *mapped;
	int err;

	*words = (struct soft_key_words){ .fd = -1 };
	words->fd = memfd_create("rdmabox-keys",
				 MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (words->fd < 0)
		return -errno;
	if (ftruncate(words->fd, SOFT_KEY_WORDS_BYTES)) {
		err = -errno;
		goto out_close;
	}
	mapped = mmap(NULL, SOFT_KEY_WORDS_BYTES, PROT_READ | PROT_WRITE,
		      MAP_SHARED, words->fd, 0);
	if (mapped == MAP_FAILED) {
		err = -errno;
		goto out_close;
	}
	/* After our own mapping, which remains the only writable one. */
	if (fcntl(words->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW |
					  F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)) {
		err = -errno;
		goto out_unmap;
	}
	words->words = mapped;
	return 0;

out_unmap:
	munmap(mapped, SOFT_KEY_WORDS_BYTES);
out_close:
	close(words->fd);
	words->fd = -1;
	return err;
}

void soft_key_words_close(struct soft_key_words *words)
{
	if (!words->words)
		return;
	munmap(words->words, SOFT_KEY_WORDS_BYTES);
	close(words->fd);
}

bool soft_file_keeps(int fd, uint64_t end_bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat status;

	return seals >= 0 && seals & F_SEAL_SHRINK && !fstat(fd, &status) &&
	       status.st_size >= 0 && (uint64_t)status.st_size >= end_bytes;
}

const soft_key_word *soft_key_words_map(int fd)
{
	void *words;

	if (!soft_file_keeps(fd, SOFT_KEY_WORDS_BYTES))
		return NULL;
	words = mmap(NULL, SOFT_KEY_WORDS_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	return words == MAP_FAILED ? NULL : words;
}

void soft_key_words_unmap(const soft_key_word *words)
{
	if (words)
		munmap((void *)words, SOFT_KEY_WORDS_BYTES);
}
