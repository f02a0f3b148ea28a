/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory.c - registers memory with the device, in protection domains.
 *
 * A batch is registered one by one, because libibverbs has no other way, and undone if one
 * fails. Deregistering returns when the device has dropped the translation, so no peer can
 * reach the memory after it.
 *
 * The device requires the right of local write if a peer may write, so RBX_REMOTE_WRITE and
 * RBX_REMOTE_ATOMIC imply it. A peer cannot invalidate what is registered so: that takes a
 * memory window (window.c). A memory file behind the range is not used here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "fabric/verbs/explain.h"
#include "fabric/verbs/verbs.h"

struct verbs_mr {
	struct rbx_mr mr;
	struct ibv_mr *ibv;
	bool allows_windows;
};

int rbx_verbs_create_domain(struct rbx_device *device,
			    struct rbx_domain **out, char *error)
{
	struct rbx_verbs_domain *domain = calloc(1, sizeof(*domain));
	int code;

	if (!domain)
		return rbx_verbs_explain(error, -ENOMEM, "out of memory");
	domain->domain.device = device;
	domain->pd = ibv_alloc_pd(rbx_verbs_device(device)->verbs);
	if (!domain->pd) {
		code = errno ? -errno : -EIO;
		free(domain);
		return rbx_verbs_explain(error, code,
			"the device cannot create another protection domain: %s",
			strerror(-code));
	}
	*out = &domain->domain;
	return 0;
}

void rbx_verbs_destroy_domain(struct rbx_domain *base)
{
	struct rbx_verbs_domain *domain = (struct rbx_verbs_domain *)base;

	ibv_dealloc_pd(domain->pd);
	free(domain);
}

struct ibv_pd *rbx_verbs_pd(const struct rbx_verbs_device *device,
			    const struct rbx_domain *domain)
{
	return domain ? ((const struct rbx_verbs_domain *)domain)->pd :
			device->pd;
}

struct ibv_mr *rbx_verbs_mr(struct rbx_mr *mr)
{
	return ((struct verbs_mr *)mr)->ibv;
}

bool rbx_verbs_mr_allows_windows(const struct rbx_mr *mr)
{
	return ((const struct verbs_mr *)mr)->allows_windows;
}

int rbx_verbs_access_flags(uint32_t rights)
{
	int flags = 0;

	if (rights & (RBX_LOCAL_WRITE | RBX_REMOTE_WRITE | RBX_REMOTE_ATOMIC))
		flags |= IBV_ACCESS_LOCAL_WRITE;
	if (rights & RBX_REMOTE_ATOMIC)
		flags |= IBV_ACCESS_REMOTE_ATOMIC;
	if (rights & RBX_REMOTE_WRITE)
		flags |= IBV_ACCESS_REMOTE_WRITE;
	if (rights & RBX_REMOTE_READ)
		flags |= IBV_ACCESS_REMOTE_READ;
	return flags;
}

static uint64_t memlock_limit_bytes(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

static struct ibv_mr *mr_register(const struct rbx_verbs_device *device,
				  const struct rbx_mr_init *init)
{
	struct ibv_pd *pd = rbx_verbs_pd(device, init->domain);
	int flags = rbx_verbs_access_flags(init->rights);

	if (init->rights & RBX_WINDOWS && device->has_windows)
		flags |= IBV_ACCESS_MW_BIND;
	if (init->is_dmabuf)
		return ibv_reg_dmabuf_mr(pd, init->memory_fd_offset,
					 init->length_bytes,
					 (uintptr_t)init->addr, init->memory_fd,
					 flags);
	return ibv_reg_mr(pd, init->addr, init->length_bytes, flags);
}

static int explain_mr(const struct rbx_verbs_device *device,
		      const struct rbx_mr_init *init, int err, char *error)
{
	if (init->is_dmabuf)
		return rbx_verbs_explain(error, err,
			"%s does not register the dmabuf: %s; its driver, or "
			"that of the memory, has to support it",
			device->verbs->device->name, strerror(-err));
	return rbx_verbs_explain_pin(error, err, init->length_bytes,
				     memlock_limit_bytes());
}

static int mr_create(struct rbx_verbs_device *device,
		     const struct rbx_mr_init *init, struct rbx_mr **mr,
		     char *error)
{
	struct verbs_mr *verbs_mr;
	int code;

	if (init->rights & RBX_REMOTE_INVALIDATE)
		return rbx_verbs_explain(error, -EOPNOTSUPP,
			"a peer cannot invalidate memory that is registered "
			"over verbs; open a window for it");
	verbs_mr = calloc(1, sizeof(*verbs_mr));
	if (!verbs_mr)
		return rbx_verbs_explain(error, -ENOMEM, "out of memory");
	verbs_mr->ibv = mr_register(device, init);
	if (!verbs_mr->ibv) {
		code = errno ? -errno : -EIO;
		free(verbs_mr);
		return explain_mr(device, init, code, error);
	}
	verbs_mr->allows_windows = init->rights & RBX_WINDOWS;
	verbs_mr->mr = (struct rbx_mr){
		.device = &device->device,
		.addr = init->addr,
		.length_bytes = init->length_bytes,
		.lkey = verbs_mr->ibv->lkey,
		.rkey = verbs_mr->ibv->rkey,
	};
	*mr = &verbs_mr->mr;
	return 0;
}

int rbx_verbs_register_memory(struct rbx_device *device,
			      const struct rbx_mr_init *inits, size_t count,
			      struct rbx_mr **mrs, char *error)
{
	size_t i;
	int err;

	for (i = 0; i < count; i++) {
		err = mr_create(rbx_verbs_device(device), &inits[i], &mrs[i],
				error);
		if (err) {
			rbx_verbs_deregister_memory(device, mrs, i);
			return err;
		}
	}
	return 0;
}

void rbx_verbs_deregister_memory(struct rbx_device *device,
				 struct rbx_mr **mrs, size_t count)
{
	struct verbs_mr *verbs_mr;
	size_t i;

	(void)device;
	for (i = 0; i < count; i++) {
		verbs_mr = (struct verbs_mr *)mrs[i];
		ibv_dereg_mr(verbs_mr->ibv);
		free(verbs_mr);
	}
}
