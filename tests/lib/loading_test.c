/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loading_test.c - librdmabox.so is loaded by a program that has used up its static
 * thread-local storage, as interpreters and their modules do.
 *
 * Usage: loading_test LIBRDMABOX.SO TLS_HOG.SO
 *
 * Copies of the hog are loaded until there is no more; then the library is, and
 * lends to itself, and a thread that was there before writes and reads.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/rdmabox/rdmabox.h"
#include "include/rdmabox/server.h"

#define HOGS_MAX 1000u
#define PAGE 4096u

#define FAIL(...)                             \
	do {                                  \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr);          \
		exit(1);                      \
	} while (0)

static void *library;

static void *find(const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol)
		FAIL("%s", dlerror());
	return symbol;
}

#define CALL(name) ((__typeof__(&name))find(#name))

/* Another file each time, or it would be the same library. */
static bool copy_and_load(const char *hog, char folder[], uint32_t number)
{
	char path[256], command[512];
	bool is_loaded;

	snprintf(path, sizeof(path), "%s/%u.so", folder, number);
	snprintf(command, sizeof(command), "cp '%s' '%s'", hog, path);
	if (system(command))
		FAIL("cannot copy %s to %s", hog, path);
	is_loaded = dlopen(path, RTLD_NOW) != NULL;
	unlink(path);
	return is_loaded;
}

static void use_up_static_tls(const char *hog)
{
	char folder[] = "/tmp/rdmabox-loading-XXXXXX";
	uint32_t count = 0;

	if (!mkdtemp(folder))
		FAIL("cannot make %s", folder);
	while (count < HOGS_MAX && copy_and_load(hog, folder, count))
		count++;
	rmdir(folder);
	if (count == 0 || count == HOGS_MAX)
		FAIL("%u libraries have static thread-local storage", count);
	if (!strstr(dlerror(), "static TLS"))
		FAIL("a library cannot be loaded, but for another reason");
}

static sem_t volume_is_there;

static void *write_and_read(void *arg)
{
	struct rbx_volume **volume = arg;
	static char in[PAGE], out[PAGE];

	sem_wait(&volume_is_there);
	memset(out, 'x', PAGE);
	if (CALL(rbx_write)(*volume, out, PAGE, PAGE) ||
	    CALL(rbx_read)(*volume, in, PAGE, PAGE))
		FAIL("%s", CALL(rbx_last_error)());
	if (memcmp(in, out, PAGE))
		FAIL("what is read is not what was written");
	return NULL;
}

static struct rbx_server *serve(void)
{
	struct rbx_server_options options;
	struct rbx_server *server;

	CALL(rbx_server_options_defaults_sized)(&options, sizeof(options));
	strcpy(options.listen, "127.0.0.1:0");
	strcpy(options.fabric, "soft");
	options.memory_bytes = 8 << 20;
	options.slab_bytes = 1 << 20;
	if (CALL(rbx_server_start)(&server, &options))
		FAIL("%s", CALL(rbx_last_error)());
	return server;
}

static struct rbx_context *open_context(void)
{
	struct rbx_options options;
	struct rbx_context *ctx;

	CALL(rbx_options_defaults_sized)(&options, sizeof(options));
	strcpy(options.fabric, "soft");
	strcpy(options.tune_file, "none");
	if (CALL(rbx_open)(&ctx, &options))
		FAIL("%s", CALL(rbx_last_error)());
	return ctx;
}

int main(int argc, char **argv)
{
	struct rbx_server *server;
	struct rbx_context *ctx;
	struct rbx_volume *volume;
	pthread_t thread;

	if (argc != 3)
		FAIL("usage: loading_test LIBRDMABOX.SO TLS_HOG.SO");
	sem_init(&volume_is_there, 0, 0);
	pthread_create(&thread, NULL, write_and_read, &volume);
	use_up_static_tls(argv[2]);
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library)
		FAIL("%s", dlerror());
	server = serve();
	ctx = open_context();
	if (CALL(rbx_volume_open)(ctx, &volume,
				  CALL(rbx_server_address)(server), 1 << 20,
				  NULL))
		FAIL("%s", CALL(rbx_last_error)());
	sem_post(&volume_is_there);
	pthread_join(thread, NULL);
	CALL(rbx_volume_close)(volume);
	CALL(rbx_close)(ctx);
	CALL(rbx_server_stop)(server);
	return 0;
}
