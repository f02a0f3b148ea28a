/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_rebuild.h - replicas of a slab that lack something are copied to.
 *
 * Those are its targets (rbx_slab_targets()): a server has just lent it, has returned with what it
 * had, or may have missed a write. Cell after cell is read from a live replica, and is written to
 * all targets at once; what is written meanwhile goes to them as well. When the last cell is there
 * they are LIVE. In a named volume their servers have labelled them before.
 *
 * All with the lock of the slab's group held.
 */
#ifndef RBX_CORE_SLAB_REBUILD_H
#define RBX_CORE_SLAB_REBUILD_H

#include "core/slab.h"

/* ---- Copies ---------------------------------------------------------------*/

/* Aims an idle piece with cell-sized memory at the next cell; start it then. false: there is
 * no more to copy. */
bool rbx_slab_copy_next(struct rbx_slab *slab, struct rbx_piece *piece);

/* A copy has ended. Returns true if it was the last of the rebuild: its replicas are live
 * now, or lost. */
bool rbx_slab_copy_done(struct rbx_slab *slab, const struct rbx_piece *piece);

/* The same if none is under way, and there is none to begin: the replica that was waited for is
 * lost. */
bool rbx_slab_copied_all(struct rbx_slab *slab);

/* How many copies are under way. */
uint32_t rbx_slab_copies_count(const struct rbx_slab *slab);

/* ---- Labels of named volumes ----------------------------------------------*/

/*
 * A rebuilt replica of a named volume counts when its server has labelled it as complete: until
 * then the next client would not take it. Returns the slot of one that has all cells; -EAGAIN:
 * its server was asked, and has not answered; -ENOENT: there is none.
 */
int rbx_slab_unlabelled(const struct rbx_slab *slab);
void rbx_slab_label_asked(struct rbx_slab *slab, uint32_t slot);
/* What it was asked is not answered any more. */
void rbx_slab_label_not_asked(struct rbx_slab *slab, uint32_t slot);
/* The server has labelled it, if the loan is still in use. */
void rbx_slab_labelled(struct rbx_slab *slab, uint32_t server, const struct rbx_loan *loan);

/* ---- Targets come and go --------------------------------------------------*/

/*
 * A replica that a server has just lent becomes a target of the rebuild, or is lost if there
 * is nothing to copy.
 */
void rbx_slab_target_join(struct rbx_slab *slab, uint32_t slot);

/* In a slab that was given a record, or has one: replicas that are RETURNED are targets. What they
 * lack is copied. */
void rbx_slab_returned_join(struct rbx_slab *slab, struct rbx_slab_record *record);

/* The last source is lost. If a target stands in for it, the other targets get the cells that
 * are still to be copied from that one; the cells copied before went to all of them. What was
 * read from a lost source is read again (slab_way.c). If none stands in, the slab is dead,
 * and the targets are of no use. */
void rbx_slab_source_replace(struct rbx_slab *slab);

/* mask: replicas that are written to and may differ in a cell from a readable one that is not
 * of them, by what an unacknowledged write left. They are not read until the cell is copied
 * to them. */
void rbx_slab_differ(struct rbx_slab *slab, uint8_t mask, uint32_t cell);
/* All replicas may differ, in such a way: anywhere, or of a guarded volume in the extents that
 * servers have noted (extents.h). All but one are copied to. */
void rbx_slab_differ_everywhere(struct rbx_slab *slab);

#endif
