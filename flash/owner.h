/* SPDX-License-Identifier: GPL-2.0 */
/*
 * owner - whose flash pages those are
 *
 * Every page that was written and not yet erased bears the *tag* of the owner
 * that wrote it, 16 bits.  A page is valid while it is the latest of its
 * logical page, then invalid until its block is collected; an overwritten page
 * stays the invalid page of whom it belonged to, whoever wrote over it.  The
 * counts of an owner are kept as pages change, so reading them is O(1).
 *
 * An owner is known by the u32 that the host gives it (0: nobody), and gets a
 * tag at its first write.  When it goes, owner_move() makes its pages those of
 * its parent in bounded time: the tags remain in the pages, and one tag points
 * to the other as in a union-find forest (the smaller tree below the larger,
 * so that no path is longer than 16).  A tag that has neither pages nor tags
 * pointing to it is used again.
 *
 * When all tags are taken a new owner's pages are nobody's; this is counted.
 *
 * The caller serialises.  No call allocates but owners_init().
 */
#ifndef MQFAIR_FLASH_OWNER_H
#define MQFAIR_FLASH_OWNER_H

#include "port.h"

enum {
	FLASH_NO_OWNER	= 0,
	OWNERS_MAX	= 65534,
};

/* A page that has never been written since its block was erased. */
#define OWNER_NO_TAG	((u16)0xffff)

/* What one owner has and has caused. */
struct flash_usage {
	u64 valid;		/* flash pages with its data */
	u64 invalid;		/* flash pages with data of it that is outdated */
	u64 written;		/* pages by its commands since it is known */
	u64 copied;		/* its valid pages in victims: copied by GC */
	u64 busy_ns;		/* of planes, for it: see flash.h */
};

struct owner {
	struct flash_usage usage;	/* of a root: all of its tree */
	u32 id;
	u32 pages;			/* that bear this very tag */
	u16 parent;			/* itself: a root */
	u16 children;			/* tags that point to it */
	u16 hash_next;			/* of roots with an id; or of free tags */
	u16 rank;			/* no path that ends in it is longer */
};

struct owners {
	struct owner *owner;		/* by tag; 0 is nobody's */
	u16 *bucket;			/* first tag of each hash value */
	u32 nr, mask;
	u16 free;			/* first of the free tags, or OWNER_NO_TAG */
	u64 refused;			/* times that no tag was left */
};

/* Room for @nr owners besides nobody; 0 or -ENOMEM. */
int owners_init(struct owners *o, u32 nr);
void owners_exit(struct owners *o);

/* The tag of @id, given to it now if it has none. */
u16 owner_tag(struct owners *o, u32 id);

/* A page was written for @tag. */
void owner_page_valid(struct owners *o, u16 tag);

/* It was overwritten or trimmed. */
void owner_page_invalid(struct owners *o, u16 tag);

/* Its block is collected: the outdated page is no more. */
void owner_page_collected(struct owners *o, u16 tag);

/* Collecting copied a valid page of @tag; returns the tag for the copy. */
u16 owner_page_copied(struct owners *o, u16 tag);

/* A command of @tag wrote a page. */
void owner_wrote(struct owners *o, u16 tag);

/* Planes were busy for @tag. */
void owner_busy(struct owners *o, u16 tag, u64 ns);

/* All that is @from's is @to's from now on; @from may come again, as new. */
void owner_move(struct owners *o, u32 from, u32 to);

/* False, and zeroes, if @id owns nothing and never did. */
bool owner_usage(const struct owners *o, u32 id, struct flash_usage *usage);

/* Whose page is it that bears @tag? */
u32 owner_of_tag(const struct owners *o, u16 tag);

u64 owners_bytes(u32 nr);

#endif /* MQFAIR_FLASH_OWNER_H */
