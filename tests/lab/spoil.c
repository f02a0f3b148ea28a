/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * spoil PID FILE OFFSET...: memory of a process that goes bad.
 *
 * At each offset of the file 64 bytes are taken, looked for in what the process may
 * write to, and one bit of them is changed there. Exit code 1 where they are not
 * found.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WANTED_BYTES 64u

/* In one mapping of the process, which may be a device's that cannot be read. */
static bool spoil_mapping(int memory, off_t first, size_t length,
			  const char *wanted)
{
	char *copy = malloc(length);
	ssize_t count = copy ? pread(memory, copy, length, first) : 0;
	char *found = count > 0 ? memmem(copy, (size_t)count, wanted,
					 WANTED_BYTES) :
				  NULL;
	bool done = false;

	if (found) {
		*found ^= 1;
		done = pwrite(memory, found, 1, first + (found - copy)) == 1;
	}
	free(copy);
	return done;
}

static bool spoil(const char *pid, const char *wanted)
{
	unsigned long first, end;
	char path[64], line[512], rights[8];
	bool done = false;
	FILE *maps;
	int memory;

	snprintf(path, sizeof(path), "/proc/%s/mem", pid);
	memory = open(path, O_RDWR | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s", &first, &end, rights) == 3 &&
		    !strncmp(rights, "rw", 2))
			done |= spoil_mapping(memory, (off_t)first, end - first,
					      wanted);
	if (maps)
		fclose(maps);
	close(memory);
	return done;
}

int main(int argc, char **argv)
{
	int file = argc > 3 ? open(argv[2], O_RDONLY | O_CLOEXEC) : -1;
	char wanted[WANTED_BYTES];

	if (file < 0) {
		fprintf(stderr, "usage: spoil PID FILE OFFSET...\n");
		return 2;
	}
	for (int i = 3; i < argc; i++) {
		if (pread(file, wanted, sizeof(wanted), atol(argv[i])) !=
			    (ssize_t)sizeof(wanted) ||
		    !spoil(argv[1], wanted)) {
			fprintf(stderr, "spoil: what is at %s of %s is not in process %s\n",
				argv[i], argv[2], argv[1]);
			return 1;
		}
	}
	close(file);
	return 0;
}
