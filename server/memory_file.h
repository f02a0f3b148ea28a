/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory_file.h - a file that the memory of a server lies in, and outlives it.
 *
 *	+-------------------+--------+------+--------+------+-- -
 *	| state_file.h      | slab 1 | tail | slab 2 | tail |
 *	+-------------------+--------+------+--------+------+-- -
 *
 * The state and the slabs are in one file, so they cannot be parted. The file is on hugetlbfs,
 * tmpfs, a file system with DAX, or any other one that can punch holes. It is mapped and shared:
 * what is written there is the kernel's at once, and stays if the process is killed. A restart
 * of the machine is another matter: remembered.h.
 *
 * A slab of the file that is not lent is a hole, so it costs no memory and is all zeros when it
 * is lent anew.
 *
 * A new file has a name of its own until the server runs. So a start that fails, or is cut
 * short, leaves nothing that looks like a memory file.
 */
#ifndef RBX_SERVER_MEMORY_FILE_H
#define RBX_SERVER_MEMORY_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/state_file.h"

#define RBX_MEMORY_FILE_PATH_BYTES 256u /* as in struct rbx_server_options */

struct rbx_memory_file {
	const char *path;
	int fd; /* -1: there is none */
	bool is_new; /* it has no name yet that others look for */
	bool is_of_machine; /* its pages are taken from the memory of the machine */
	uint64_t id; /* the inode */
	/* Which of the files that had this inode one after another: when it was made, or another
	 * number if the file system does not tell; 0: it tells nothing */
	uint64_t born;
	uint64_t size_bytes; /* when it was opened */
	uint64_t page_bytes; /* what it is made of, and holes are punched in */
	char boot[RBX_STATE_BOOT_BYTES]; /* when this machine was started */
	uint8_t *state; /* NULL: not mapped */
};

/* ---- memory_file_open.c: the simulator has its own -------------------------------*/

/*
 * Opens the file and locks it, or makes one. Fills in all but state. Returns 0, or with
 * rbx_last_error():
 *	-EBUSY: another server has it open
 *	-EACCES: others have rights to it, or this process has none
 *	-EINVAL: it is no file
 *	-errno of open() and the like
 */
int rbx_memory_file_open(struct rbx_memory_file *file, const char *path);
/* Gives a new file its name. 0 or -errno with rbx_last_error(). */
int rbx_memory_file_publish(struct rbx_memory_file *file);
/* Unlocks it. One that has not got its name is gone. */
void rbx_memory_file_close(struct rbx_memory_file *file);

/* ---- memory_file.c -----------------------------------------------------------------*/

/* Makes a file as long as this if it is shorter, and maps the state. The first state_bytes of it
 * get pages. 0 or -errno with rbx_last_error(). */
int rbx_memory_file_map_state(struct rbx_memory_file *file, uint64_t size_bytes,
			      uint64_t state_bytes);
/* The same for more slabs, of a file that is mapped. */
int rbx_memory_file_grow(struct rbx_memory_file *file, uint64_t size_bytes, uint64_t state_bytes);
/* What is there becomes a hole, also behind the end. 0 or -errno. */
int rbx_memory_file_punch(const struct rbx_memory_file *file, uint64_t at_bytes,
			  uint64_t length_bytes);
/* Waits until all of it is on the medium. 0 or -errno. */
int rbx_memory_file_sync(const struct rbx_memory_file *file);
void rbx_memory_file_unmap_state(struct rbx_memory_file *file);

#endif
