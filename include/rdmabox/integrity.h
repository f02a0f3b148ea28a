/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * integrity.h - what protects the bytes between a client and a server from whoever is on
 * the network between them.
 */
#ifndef RDMABOX_INTEGRITY_H
#define RDMABOX_INTEGRITY_H

#ifdef __cplusplus
extern "C" {
#endif

/* All of them are made of the secret; without a secret nothing is protected. */
enum rbx_integrity {
	/* tls over TCP to an address that is not a loopback one, if there is a secret; else
	 * mac. Both sides come to the same answer by themselves. */
	RBX_INTEGRITY_DEFAULT = 0,
	/* Nothing is promised but the proof of the secret at the beginning. Beyond loopback it
	 * needs `insecure`. Control messages have their codes all the same: they cost nothing. */
	RBX_INTEGRITY_OFF,
	/* Control messages carry a message authentication code. Data is as the fabric moves
	 * it: in clear text, and whoever can change packets can change it. */
	RBX_INTEGRITY_MAC,
	/* All that goes over TCP is encrypted and authenticated by TLS 1.3, to loopback
	 * addresses too. Only the soft fabric can: a NIC moves data by itself. */
	RBX_INTEGRITY_TLS,
};

#ifdef __cplusplus
}
#endif

#endif
