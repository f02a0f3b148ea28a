/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keep-tree: keeps every file below a directory in remote memory, and proves that all come
 * back, even if a server is killed meanwhile.
 *
 *	cc keep_tree*.c -o keep-tree $(pkg-config --cflags --libs rdmabox) -lcrypto -pthread
 *	keep-tree --servers A:P,B:P --spare C:P --replicas 2 --passes 3 DIR
 *
 * Stores all files, remembering their SHA-256, and reads them back. Each pass of --passes
 * then reads every file, compares it and stores it again with other contents. When a server
 * goes down, the spare joins. The lost copies are rebuilt on it while the passes go on. At
 * the end all slabs must have all replicas, and everything is read and compared once more.
 *
 * Scripts may read stdout: each step begins with a line `phase ...`, events are lines `event
 * ...`. Exit code 0: every byte came back every time; 1: not; 2: it could not begin.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keep_tree.h"

#define EXIT_BAD_DATA 1
#define EXIT_USAGE 2
#define PASSES_MAX 250 /* the key of a pass is a byte */

struct options {
	const char *servers;
	const char *spare;
	char *directory;
	unsigned int passes;
	struct rbx_options library;
	struct rbx_volume_options volume;
};

static const char usage[] =
	"usage: keep-tree --servers A:P,B:P [--spare C:P] [--replicas R]\n"
	"                 [--checksums] [--fabric F] [--secret-file F]\n"
	"                 [--passes N] DIR\n";

int complain(const char *format, ...)
{
	va_list args;

	fputs("keep-tree: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return -1;
}

static void phase(const char *name)
{
	printf("phase %s\n", name);
	fflush(stdout);
}

static int set_text(char *field, size_t bytes, const char *text)
{
	return (size_t)snprintf(field, bytes, "%s", text) < bytes ? 0 : -1;
}

static int set_number(unsigned int *field, const char *text, unsigned int max)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	*field = number;
	return *text >= '0' && *text <= '9' && !*end && number <= max ? 0 : -1;
}

static int set_option(struct options *o, int letter, const char *text)
{
	switch (letter) {
	case 's':
		o->servers = text;
		return 0;
	case 'S':
		o->spare = text;
		return 0;
	case 'r':
		return set_number(&o->volume.replicas, text, 3);
	case 'c':
		o->volume.checksums = 1;
		return 0;
	case 'f':
		return set_text(o->library.fabric, sizeof(o->library.fabric),
				text);
	case 'k':
		return set_text(o->library.secret_file,
				sizeof(o->library.secret_file), text);
	case 'p':
		return set_number(&o->passes, text, PASSES_MAX);
	}
	return -1;
}

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option names[] = {
		{ "servers", required_argument, NULL, 's' },
		{ "spare", required_argument, NULL, 'S' },
		{ "replicas", required_argument, NULL, 'r' },
		{ "checksums", no_argument, NULL, 'c' },
		{ "fabric", required_argument, NULL, 'f' },
		{ "secret-file", required_argument, NULL, 'k' },
		{ "passes", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int letter;

	rbx_options_defaults(&o->library);
	rbx_volume_options_defaults(&o->volume);
	while ((letter = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (letter == 'h') {
			fputs(usage, stdout);
			exit(0);
		}
		if (letter == '?')
			return -1;
		if (set_option(o, letter, optarg))
			return complain("'%s' is not accepted; see --help",
					optarg);
	}
	if (optind + 1 != argc || !o->servers)
		return complain("give --servers and one directory; see "
				"--help");
	o->directory = argv[optind];
	return 0;
}

static int rewrite_passes(struct mover *mover, unsigned int passes)
{
	for (unsigned int i = 1; i <= passes; i++) {
		struct pass pass = { .kind = PASS_VERIFY_AND_REWRITE,
				     .key = i - 1, .new_key = i };
		char name[32];

		snprintf(name, sizeof(name), "pass %u", i);
		pass.name = name;
		phase(name);
		if (mover_run(mover, &pass))
			return -1;
	}
	return 0;
}

/* Waits for rebuilds and reads all back, until nothing was lost meanwhile. */
static int heal_and_verify(struct mover *mover, struct health *health,
			   uint8_t key)
{
	struct pass pass = { .kind = PASS_VERIFY, .name = "verify",
			     .key = key };
	int healed;

	do {
		phase("verify");
		if (mover_run(mover, &pass))
			return -1;
		healed = health_heal(health);
	} while (healed > 0);
	return healed;
}

static int keep(struct mover *mover, struct health *health,
		unsigned int passes)
{
	struct pass store = { .kind = PASS_STORE, .name = "store" };

	phase("store");
	if (mover_run(mover, &store))
		return -1;
	phase("stored");
	if (heal_and_verify(mover, health, 0))
		return -1;
	phase("verified");
	if (!passes)
		return 0;
	if (rewrite_passes(mover, passes) || health_heal(health) < 0 ||
	    heal_and_verify(mover, health, passes))
		return -1;
	phase("done");
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct health health;
	struct rbx_context *ctx = NULL;
	struct mover *mover = NULL;
	struct tree tree = { 0 };
	int rc = EXIT_USAGE;

	if (parse(&o, argc, argv) || tree_find(&tree, o.directory))
		goto out;
	health_init(&health, o.spare);
	o.volume.event = health_note;
	o.volume.user = &health;
	if (rbx_open(&ctx, &o.library) ||
	    rbx_volume_open(ctx, &health.volume, o.servers, tree.volume_bytes,
			    &o.volume)) {
		complain("%s", rbx_last_error());
		goto out_close;
	}
	if (!mover_create(&mover, ctx, health.volume, &tree, &health))
		rc = keep(mover, &health, o.passes) ? EXIT_BAD_DATA : 0;

out_close:
	mover_destroy(mover);
	if (health.volume)
		rbx_volume_close(health.volume);
	if (ctx)
		rbx_close(ctx);
out:
	tree_free(&tree);
	return rc;
}
