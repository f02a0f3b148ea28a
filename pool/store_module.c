/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * store_module.c - loads the part of the library that knows etcd.
 *
 * libcurl brings some thirty libraries. A program pays for them only if it names a pool of
 * etcd: the part is loaded then, and stays. It is looked for in the folder rdmabox/ beside
 * this library, where it is installed; and beside this library, where a build has it. Only
 * there, so nobody can put another one in its place by the environment.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/error.h"
#include "pool/store.h"

/* There in a program that is linked with the part itself, as tests are. */
#pragma weak rbx_store_etcd_1

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER; /* guards loaded_ops */
static const struct rbx_store_ops *loaded_ops;

/* The folder of what this function is in, with a slash at the end; or "". */
static void own_folder(char *folder, size_t folder_bytes)
{
	Dl_info info;
	const char *slash;

	folder[0] = '\0';
	if (!dladdr((void *)(uintptr_t)own_folder, &info) || !info.dli_fname)
		return;
	slash = strrchr(info.dli_fname, '/');
	if (slash)
		snprintf(folder, folder_bytes, "%.*s", (int)(slash + 1 - info.dli_fname),
			 info.dli_fname);
}

static int module_load(const struct rbx_store_ops **ops)
{
	char folder[PATH_MAX], path[PATH_MAX + 64];
	void *module;

	own_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%srdmabox/" RBX_STORE_ETCD_FILE, folder);
	if (access(path, F_OK))
		snprintf(path, sizeof(path), "%s" RBX_STORE_ETCD_FILE, folder);
	if (!folder[0] || access(path, F_OK))
		return rbx_error(-EOPNOTSUPP, "a pool of etcd needs %srdmabox/" RBX_STORE_ETCD_FILE
				 ", which is not there: build with libcurl (-Detcd=enabled)",
				 folder);
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (module)
		*ops = dlsym(module, RBX_STORE_ETCD_SYMBOL);
	if (!module || !*ops)
		return rbx_error(-EOPNOTSUPP, "a pool of etcd needs a part of the library: %s",
				 dlerror());
	return 0;
}

int rbx_store_etcd_load(const struct rbx_store_ops **ops)
{
	int err = 0;

	pthread_mutex_lock(&load_lock);
	if (!loaded_ops)
		loaded_ops = &rbx_store_etcd_1;
	if (!loaded_ops)
		err = module_load(&loaded_ops);
	*ops = loaded_ops;
	pthread_mutex_unlock(&load_lock);
	return err;
}
