# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Describes the compiled module `rdmabox._native` to cffi, in API mode.

The C compiler checks each declaration against the headers. setup.py calls
for_setuptools(). meson.build makes this file write the C source, and compiles it itself:

    python3 build_ffi.py INCLUDE_DIRECTORY OUTPUT.c
"""

import os
import shlex
import subprocess
import sys
from typing import Dict, List

import cffi

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import headers  # noqa: E402  (beside this file, which need not be on the path)

SOURCES = ["native/fence.c", "native/notice.c", "native/operation.c", "native/queue.c"]

DECLARATIONS = """
#define RBX_FENCE ...
#define RBX_NO_MERGE ...
#define RBX_URGENT ...
#define RBX_SEGMENTS_MAX ...

struct rbx_context;
struct rbx_volume;
struct rbx_region;
struct rbx_server;
struct rbx_event;
struct rbx_options { ...; };
struct iovec { void *iov_base; size_t iov_len; ...; };

const char *rbx_last_error(void);
void rbx_options_defaults(struct rbx_options *options);
int rbx_options_set(struct rbx_options *options, const char *key_value);
int rbx_size_parse(const char *text, uint64_t *bytes);
int rbx_open(struct rbx_context **ctx, const struct rbx_options *options);
int rbx_close(struct rbx_context *ctx);
int rbx_polling_set(struct rbx_context *ctx, const char *polling);
int rbx_describe(struct rbx_context *ctx, char *text, size_t size_bytes);
int rbx_wait_room(struct rbx_context *ctx, int timeout_ms);

struct rbx_volume_options {
    size_t size_bytes;
    uint32_t replicas;
    uint32_t checksums;
    void (*event)(struct rbx_volume *, const struct rbx_event *, void *);
    void *user;
    uint32_t on_demand;
    const char *name;
    uint32_t take_over;
    char spread[64];
    uint32_t read_only;
    uint64_t scrub_rate;
    ...;
};
struct rbx_volume_status {
    uint32_t slabs, slabs_whole, slabs_rebuilding, slabs_lost, servers, servers_up;
    uint64_t rebuilt_bytes;
    uint32_t slabs_blank, slabs_last, slabs_holed, replicas, slabs_together;
    uint64_t scrub_passes, scrub_bad_pages;
    ...;
};
void rbx_volume_options_defaults(struct rbx_volume_options *options);
int rbx_volume_open(struct rbx_context *ctx, struct rbx_volume **volume, const char *servers,
                    uint64_t size, const struct rbx_volume_options *options);
int rbx_volume_close(struct rbx_volume *volume);
uint64_t rbx_volume_size(const struct rbx_volume *volume);
int rbx_volume_add_server(struct rbx_volume *volume, const char *server);
int rbx_volume_discard(struct rbx_volume *volume, uint64_t offset, uint64_t length_bytes);
void rbx_volume_status(struct rbx_volume *volume, struct rbx_volume_status *status);
int rbx_read(struct rbx_volume *volume, void *buf, size_t length, uint64_t offset);
int rbx_write(struct rbx_volume *volume, const void *buf, size_t length, uint64_t offset);
int rbx_readv(struct rbx_volume *volume, const struct iovec *iov, int count, uint64_t offset);
int rbx_writev(struct rbx_volume *volume, const struct iovec *iov, int count, uint64_t offset);

struct rbx_volume_create_options {
    size_t size_bytes;
    uint64_t keep_s;
    uint32_t replicas, reserve, checksums, overcommit;
    ...;
};
struct rbx_volume_info {
    size_t size_bytes;
    char name[...], writer[...], owner[...];
    uint64_t volume_bytes, slab_bytes, keep_s, volume_id, reserved_bytes;
    uint32_t is_open, servers, servers_there, replicas, servers_out, copies, checksums;
    uint32_t is_whole, too_few;
    ...;
};
void rbx_volume_create_options_defaults(struct rbx_volume_create_options *options);
int rbx_volume_create(struct rbx_context *ctx, const char *servers, const char *name,
                      uint64_t size, const struct rbx_volume_create_options *options);
int rbx_volume_grow(struct rbx_context *ctx, const char *servers, const char *name,
                    uint64_t size);
int rbx_volume_grow_beyond(struct rbx_context *ctx, const char *servers, const char *name,
                           uint64_t size);
int rbx_volume_rename(struct rbx_context *ctx, const char *servers, const char *name,
                      const char *new_name);
int rbx_volume_remove(struct rbx_context *ctx, const char *servers, const char *name, int force);
int rbx_volume_list(struct rbx_context *ctx, const char *servers, struct rbx_volume_info *infos,
                    uint32_t max);

int rbx_region_register(struct rbx_context *ctx, void *addr, size_t length,
                        struct rbx_region **region);
void rbx_region_release(struct rbx_region *region);

struct rbx_stats { size_t size_bytes; %(stats)s ...; };
void rbx_stats_get(struct rbx_context *ctx, struct rbx_stats *stats);
void rbx_stats_reset(struct rbx_context *ctx);

struct rbx_server_options {
    size_t size_bytes;
    char listen[...], fabric[...], device[...], secret_file[...], secrets_file[...];
    int gid_index;
    uint64_t memory_bytes, slab_bytes, quota_bytes;
    uint32_t lease_ms, insecure, overcommit, clients_max, small_pages, integrity, volumes_max;
    void *user;
    void (*log)(const char *line, void *user);
    ...;
};
struct rbx_server_stats { size_t size_bytes; %(server_stats)s ...; };
void rbx_server_options_defaults(struct rbx_server_options *options);
int rbx_server_start(struct rbx_server **server, const struct rbx_server_options *options);
const char *rbx_server_address(const struct rbx_server *server);
const char *rbx_server_describe(const struct rbx_server *server);
int rbx_server_drain(struct rbx_server *server, uint32_t timeout_ms);
int rbx_server_stop(struct rbx_server *server);
void rbx_server_stats_get(struct rbx_server *server, struct rbx_server_stats *stats);
int rbx_server_query(struct rbx_context *ctx, const char *address,
                     struct rbx_server_stats *stats);

struct rbxpy_queue;
struct rbxpy_queue *rbxpy_queue_new(void);
void rbxpy_queue_free(struct rbxpy_queue *queue);
int rbxpy_queue_fd(const struct rbxpy_queue *queue);
void rbxpy_queue_wake(struct rbxpy_queue *queue);
void rbxpy_queue_wait(const struct rbxpy_queue *queue, int timeout_ms);

struct rbxpy_fence;
struct rbxpy_fence *rbxpy_fence_new(void);
void rbxpy_fence_free(struct rbxpy_fence *fence);
void rbxpy_fence_wait(struct rbxpy_fence *fence);
long rbxpy_fence_outstanding(struct rbxpy_fence *fence);

struct rbxpy_operation;
struct rbxpy_wanted {
    uint64_t id;
    int write;
    int flags;
    void *buf;
    uint64_t length_bytes;
    uint64_t offset;
    struct rbx_region *region;
};
struct rbxpy_limits { uint64_t fragment_bytes; uint32_t fragments_max; };
struct rbxpy_operation *rbxpy_operation_new(struct rbxpy_queue *queue, struct rbxpy_fence *fence,
                                            const struct rbxpy_wanted *wanted,
                                            const struct rbxpy_limits *limits);
void rbxpy_operation_free(struct rbxpy_operation *operation);
int rbxpy_operations_submit(struct rbx_volume *volume,
                            struct rbxpy_operation *const operations[], unsigned int count,
                            const struct rbxpy_limits *limits, unsigned int *taken);
int rbxpy_operation_cancel(struct rbxpy_operation *operation, int status);
struct rbxpy_ended {
    unsigned int next;
    unsigned int count;
    uint64_t ids[...];
    int32_t statuses[...];
};
unsigned int rbxpy_operations_take(struct rbxpy_queue *queue, struct rbxpy_ended *ended);

struct rbxpy_notice {
    int kind;
    uint32_t slab_count;
    uint64_t dropped_count;
    char server[...];
    char text[...];
    ...;
};
struct rbxpy_notices;
struct rbxpy_notices *rbxpy_notices_new(struct rbxpy_queue *queue);
void rbxpy_notices_free(struct rbxpy_notices *notices);
struct rbxpy_notice *rbxpy_notices_take(struct rbxpy_notices *notices);
void rbxpy_notice_free(struct rbxpy_notice *notice);
void rbxpy_volume_event(struct rbx_volume *volume, const struct rbx_event *event, void *user);
void rbxpy_server_log(const char *line, void *user);
"""


def fields_text(fields: List[headers.Field]) -> str:
    return " ".join("uint64_t %s;" % field.name for field in fields)


def declare(include: str, arguments: Dict[str, List[str]]) -> cffi.FFI:
    client, server = headers.stats(include)
    ffi = cffi.FFI()
    ffi.cdef(DECLARATIONS % {"stats": fields_text(client), "server_stats": fields_text(server)})
    ffi.set_source("rdmabox._native", '#include "native.h"\n', **arguments)
    return ffi


def package_config(option: str) -> List[str]:
    return shlex.split(subprocess.run(
        ["pkg-config", option, "rdmabox"],
        check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout)


def for_setuptools() -> cffi.FFI:
    """With the flags of the librdmabox that pkg-config finds."""
    link = package_config("--libs")
    rpath = os.environ.get("RDMABOX_RPATH")
    if rpath:
        link.append("-Wl,-rpath," + rpath)
    return declare(headers.include_directory(), {
        "sources": SOURCES,
        "include_dirs": ["native"],
        "extra_compile_args": ["-std=gnu11"] + package_config("--cflags"),
        "extra_link_args": link,
    })


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    declare(sys.argv[1], {}).emit_c_code(sys.argv[2])
