/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How fast can memory of another process on this host be read or written?
 *
 * This is the limit for same-host access of the soft fabric: a memory file of the volume's
 * size, mapped and shared as a server's slab is, and only memcpy() between it and `depth`
 * buffers used in turn, in the same pattern as rdmabox bench. Prints one JSON object.
 */
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define ROUND_COPIES 256 /* between two reads of the clock */
#define BUFFER_ALIGN 4096

struct load {
	uint64_t volume_bytes;
	uint64_t block_bytes;
	uint64_t depth;
	double runtime_s;
	int is_write;
	int is_random;
	char *volume;
	char *buffers;
};

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* splitmix64, scaled to 0 .. range - 1. */
static uint64_t draw(uint64_t *state, uint64_t range)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	z ^= z >> 31;
	return (unsigned __int128)z * range >> 64;
}

static void copy_one(const struct load *load, uint64_t index, uint64_t *random)
{
	uint64_t blocks = load->volume_bytes / load->block_bytes;
	uint64_t block = load->is_random ? draw(random, blocks) :
					   index % blocks;
	char *remote = load->volume + block * load->block_bytes;
	char *local = load->buffers + index % load->depth * load->block_bytes;

	if (load->is_write)
		memcpy(remote, local, load->block_bytes);
	else
		memcpy(local, remote, load->block_bytes);
	/* Marks the bytes as used, so that the compiler cannot omit a copy. */
	__asm__ volatile("" : : "r"(local), "r"(remote) : "memory");
}

static double run(const struct load *load)
{
	double begin_s = now_s(), elapsed_s;
	uint64_t random = 1, copies = 0;

	do {
		for (int i = 0; i < ROUND_COPIES; i++)
			copy_one(load, copies++, &random);
		elapsed_s = now_s() - begin_s;
	} while (elapsed_s < load->runtime_s);
	return copies / elapsed_s;
}

static int map(struct load *load)
{
	int fd = memfd_create("volume", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, load->volume_bytes)) {
		perror("same_host_memcpy: memory file");
		return -1;
	}
	load->volume = mmap(NULL, load->volume_bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, 0);
	close(fd);
	load->buffers = aligned_alloc(BUFFER_ALIGN,
				      load->depth * load->block_bytes);
	if (load->volume == MAP_FAILED || !load->buffers) {
		perror("same_host_memcpy: mapping");
		return -1;
	}
	/* So that every page exists before the clock runs. */
	memset(load->volume, 1, load->volume_bytes);
	memset(load->buffers, 2, load->depth * load->block_bytes);
	return 0;
}

static int parse(struct load *load, int argc, char **argv)
{
	static const struct option names[] = {
		{ "volume", required_argument, NULL, 'v' },
		{ "op", required_argument, NULL, 'o' },
		{ "pattern", required_argument, NULL, 'p' },
		{ "block", required_argument, NULL, 'b' },
		{ "depth", required_argument, NULL, 'd' },
		{ "runtime", required_argument, NULL, 'r' },
		{ 0 },
	};
	int letter;

	while ((letter = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (letter) {
		case 'v':
			load->volume_bytes = strtoull(optarg, NULL, 10);
			break;
		case 'o':
			load->is_write = !strcmp(optarg, "write");
			break;
		case 'p':
			load->is_random = !strcmp(optarg, "rand");
			break;
		case 'b':
			load->block_bytes = strtoull(optarg, NULL, 10);
			break;
		case 'd':
			load->depth = strtoull(optarg, NULL, 10);
			break;
		case 'r':
			load->runtime_s = atof(optarg);
			break;
		default:
			return -1;
		}
	}
	return optind == argc && load->block_bytes && load->depth &&
			       load->block_bytes % BUFFER_ALIGN == 0 &&
			       load->volume_bytes >= load->block_bytes ?
		       0 :
		       -1;
}

int main(int argc, char **argv)
{
	struct load load = { .volume_bytes = 64 << 20, .block_bytes = 4096,
			     .depth = 32, .runtime_s = 1 };
	double per_s;

	if (parse(&load, argc, argv)) {
		fprintf(stderr,
			"usage: same_host_memcpy [--volume BYTES] [--op "
			"read|write] [--pattern seq|rand] [--block BYTES] "
			"[--depth N] [--runtime S]\n");
		return 2;
	}
	if (map(&load))
		return 2;
	per_s = run(&load);
	printf("{\"op\": \"%s\", \"pattern\": \"%s\", \"block_bytes\": %llu, "
	       "\"depth\": %llu, \"iops\": %.1f, \"mb_per_s\": %.1f}\n",
	       load.is_write ? "write" : "read",
	       load.is_random ? "rand" : "seq",
	       (unsigned long long)load.block_bytes,
	       (unsigned long long)load.depth, per_s,
	       per_s * load.block_bytes / 1e6);
	return 0;
}
