/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pcie.c - see pcie.h. */
#include "sim/nic/pcie.h"

void rbx_nic_pcie_init(struct rbx_nic_pcie *pcie,
		       const struct rbx_nic_params *params)
{
	*pcie = (struct rbx_nic_pcie){
		.params = params,
		.to_host = { .mbps = params->pcie_mbps },
		.to_nic = { .mbps = params->pcie_mbps },
	};
}

static uint32_t divided_up(uint32_t bytes, uint32_t by)
{
	return (bytes + by - 1) / by;
}

/* Time for data in packets with their headers. */
static struct rbx_nic_span pass(const struct rbx_nic_params *params,
				struct rbx_nic_pipe *pipe,
				struct rbx_nic_span span, uint32_t bytes)
{
	uint32_t packets = divided_up(bytes, params->pcie_payload_bytes);

	return rbx_nic_pipe_pass(
		pipe, span,
		bytes + (uint64_t)packets * params->pcie_header_bytes,
		params->pcie_payload_bytes + params->pcie_header_bytes);
}

uint64_t rbx_nic_pcie_ring(struct rbx_nic_pcie *pcie, uint64_t at_ps,
			   uint32_t bytes)
{
	const struct rbx_nic_params *params = pcie->params;

	return pass(params, &pcie->to_nic, rbx_nic_span_at(at_ps), bytes)
		       .tail_ps +
	       rbx_nic_ps(params->pcie_write_ns);
}

struct rbx_nic_span rbx_nic_pcie_write(struct rbx_nic_pcie *pcie,
				       struct rbx_nic_span span, uint32_t bytes)
{
	const struct rbx_nic_params *params = pcie->params;

	return rbx_nic_span_later(pass(params, &pcie->to_host, span, bytes),
				  params->pcie_write_ns);
}

struct rbx_nic_span rbx_nic_pcie_read(struct rbx_nic_pcie *pcie,
				      struct rbx_nic_span span, uint32_t bytes)
{
	const struct rbx_nic_params *params = pcie->params;
	uint32_t requests = divided_up(bytes, params->pcie_read_bytes);

	span = rbx_nic_pipe_pass(&pcie->to_host, span,
				 (uint64_t)requests * params->pcie_header_bytes,
				 params->pcie_header_bytes);
	return rbx_nic_span_later(pass(params, &pcie->to_nic, span, bytes),
				  params->pcie_read_ns);
}

uint64_t rbx_nic_pcie_fill(struct rbx_nic_pcie *pcie, uint64_t at_ps,
			   uint32_t bytes)
{
	uint64_t *first_free = pcie->fill_free_ps;
	uint64_t begin_ps;

	for (uint32_t i = 1; i < pcie->params->fills_at_once; i++) {
		if (pcie->fill_free_ps[i] < *first_free)
			first_free = &pcie->fill_free_ps[i];
	}
	begin_ps = RBX_MAX(at_ps, *first_free);
	pcie->fills++;
	pcie->fill_wait_ps += begin_ps - at_ps;
	*first_free = rbx_nic_pcie_read(pcie, rbx_nic_span_at(begin_ps), bytes)
			      .tail_ps +
		      rbx_nic_ps(pcie->params->fill_ns);
	return *first_free;
}
