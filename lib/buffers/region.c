/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* region.c - memory that a program registers once, for itself or for other programs. */
#include <stdlib.h>

#include "include/rdmabox/endpoint.h"
#include "lib/context.h"
#include "lib/endpoint/domain.h"

struct rbx_region {
	struct rbx_context *ctx;
	struct rbx_protection_domain *domain; /* NULL: the context's */
	struct rbx_mr *mr;
	bool is_dmabuf; /* its addresses are not in this process */
};

int rbx_region_rights(const struct rbx_device_caps *caps, uint32_t rights,
		      bool is_window, uint32_t *of_fabric)
{
	const uint32_t all = RBX_REGION_READ | RBX_REGION_WRITE |
			     RBX_REGION_ATOMIC | RBX_REGION_INVALIDATE |
			     (is_window ? 0 : RBX_REGION_WINDOWS);
	const bool has_invalidate = is_window ? caps->has_window_invalidate :
						caps->has_remote_invalidate;

	if (rights & ~all)
		return rbx_error(-EINVAL, "rights 0x%x: unknown rights",
				 rights);
	if (((rights & RBX_REGION_ATOMIC) && !caps->has_atomics) ||
	    ((rights & RBX_REGION_INVALIDATE) && !has_invalidate))
		return rbx_error(-EOPNOTSUPP, "rights 0x%x: %s does not support them",
				 rights, caps->name);
	*of_fabric =
		RBX_LOCAL_WRITE |
		(rights & RBX_REGION_READ ? RBX_REMOTE_READ : 0) |
		(rights & RBX_REGION_WRITE ? RBX_REMOTE_WRITE : 0) |
		(rights & RBX_REGION_ATOMIC ? RBX_REMOTE_ATOMIC : 0) |
		(rights & RBX_REGION_INVALIDATE ? RBX_REMOTE_INVALIDATE : 0) |
		(rights & RBX_REGION_WINDOWS ? RBX_WINDOWS : 0);
	return 0;
}

int rbx_region_register(struct rbx_context *ctx, void *addr, size_t length,
			struct rbx_region **out)
{
	return rbx_region_export(ctx, NULL, addr, length, 0, out);
}

/* Makes a region. *init has all but its domain and rights. */
static int region_make(struct rbx_context *ctx,
		       struct rbx_protection_domain *domain, uint32_t rights,
		       struct rbx_mr_init *init, struct rbx_region **out)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_region *region;
	int err;

	err = rbx_guard_use(ctx, "rbx_region_register");
	if (!err)
		err = rbx_region_rights(&ctx->device->caps, rights, false,
					&init->rights);
	if (!err)
		err = rbx_domain_use(domain, ctx, &init->domain);
	if (err)
		return err;
	region = calloc(1, sizeof(*region));
	if (!region) {
		rbx_domain_leave(domain);
		return rbx_error(-ENOMEM, "cannot allocate a region");
	}
	region->ctx = ctx;
	region->domain = domain;
	region->is_dmabuf = init->is_dmabuf;
	err = ctx->device->ops->register_memory(ctx->device, init, 1,
						&region->mr, error);
	if (err) {
		rbx_domain_leave(domain);
		free(region);
		return rbx_error(err, "%s", error);
	}
	RBX_ADD_RELAXED(&ctx->counters.registrations, 1);
	RBX_FETCH_ADD(&ctx->regions_count, 1);
	*out = region;
	return 0;
}

int rbx_region_export(struct rbx_context *ctx,
		      struct rbx_protection_domain *domain, void *addr,
		      size_t length, uint32_t rights, struct rbx_region **region)
{
	struct rbx_mr_init init = {
		.addr = addr,
		.length_bytes = length,
		.memory_fd = -1,
	};

	if (!ctx || !region || !addr || length == 0)
		return rbx_error(-EINVAL, "cannot register %zu bytes at %p",
				 length, addr);
	return region_make(ctx, domain, rights, &init, region);
}

int rbx_region_export_dmabuf(struct rbx_context *ctx,
			     struct rbx_protection_domain *domain, int fd,
			     uint64_t offset, size_t length, uint32_t rights,
			     struct rbx_region **region)
{
	struct rbx_mr_init init = {
		.addr = (void *)(uintptr_t)offset,
		.length_bytes = length,
		.memory_fd = fd,
		.memory_fd_offset = offset,
		.is_dmabuf = true,
	};

	if (!ctx || !region || fd < 0 || length == 0)
		return rbx_error(-EINVAL, "cannot register %zu bytes of descriptor %d",
				 length, fd);
	if (!ctx->device->caps.has_dmabuf)
		return rbx_error(-EOPNOTSUPP, "%s is a device in software, which cannot access a dmabuf: register it with an RDMA device",
				 ctx->device->caps.name);
	return region_make(ctx, domain, rights, &init, region);
}

void rbx_region_release(struct rbx_region *region)
{
	struct rbx_device *device;

	if (!region || rbx_guard_use(region->ctx, "rbx_region_release"))
		return;
	device = region->ctx->device;
	device->ops->deregister_memory(device, &region->mr, 1);
	RBX_ADD_RELAXED(&region->ctx->counters.deregistrations, 1);
	RBX_FETCH_ADD(&region->ctx->regions_count, (uint32_t)-1);
	rbx_domain_leave(region->domain);
	free(region);
}

void rbx_region_key(const struct rbx_region *region, struct rbx_region_key *key)
{
	*key = (struct rbx_region_key){
		.address = (uintptr_t)region->mr->addr,
		.length_bytes = region->mr->length_bytes,
		.key = region->mr->rkey,
	};
}

bool rbx_region_is_dmabuf(const struct rbx_region *region)
{
	return region->is_dmabuf;
}

struct rbx_mr *rbx_region_mr(const struct rbx_region *region)
{
	return region->mr;
}

bool rbx_region_covers(const struct rbx_region *region, const void *buf,
		       size_t length, uint32_t *lkey)
{
	uintptr_t start = (uintptr_t)region->mr->addr;
	uintptr_t at = (uintptr_t)buf;

	if (at < start || at - start > region->mr->length_bytes ||
	    length > region->mr->length_bytes - (at - start))
		return false;
	*lkey = region->mr->lkey;
	return true;
}
