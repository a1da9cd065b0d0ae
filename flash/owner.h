/* SPDX-License-Identifier: GPL-2.0 */
/*
 * owner - the owners of physical pages, counted
 *
 * A caller names an owner, which is a cgroup, by a u32; 0 means no owner.  An
 * owner gets a 16-bit *tag* with its first command that touches flash.  Every
 * physical page carries the tag of the owner that wrote it, until it is erased.
 * A page is valid while it is the latest of its logical page.  Then it is
 * invalid until GC collects it, and it remains with its owner even if another
 * owner wrote the new version.  The counts of an owner follow each change, so
 * reading them is O(1).
 *
 * When an owner goes, owner_move() gives its pages to its parent in bounded
 * time.  The pages keep their tags, and one of the two tags points to the
 * other, as in a union-find forest.  The shallower tree goes below the deeper,
 * so no path is longer than 16 tags.  A tag that no page carries and no tag
 * points to is free again.
 *
 * When all tags are taken, the pages of a new owner have no owner;
 * owners.refused counts these cases.
 *
 * Example.  Owner 7 has 100 pages with tag 1, its parent 5 has none.
 * owner_move(7, 5) gives owner 5 a tag, points one of the two to the other and
 * adds up the counts: owner_usage(5) says 100 pages, owner_usage(7) is unknown.
 *
 * The caller serialises.  Only owners_init() allocates.
 *
 * Source: linking by rank of Tarjan and van Leeuwen, Worst-case Analysis of Set
 * Union Algorithms, JACM 1984, without compression of paths.
 * Tested by tests/flash/owner.c against a recount.
 */
#ifndef MQFAIR_FLASH_OWNER_H
#define MQFAIR_FLASH_OWNER_H

#include "port.h"

enum {
	FLASH_NO_OWNER	= 0,
	OWNERS_MAX	= 65534,
};

/* The tag of a physical page that is not written. */
#define OWNER_NO_TAG	((u16)0xffff)

/* The pages of one owner, and the work done for it. */
struct flash_usage {
	u64 valid;		/* physical pages with its current data */
	u64 invalid;		/* physical pages with its outdated data */
	u64 written;		/* pages that its commands have written */
	u64 copied;		/* its valid pages that GC has copied */
	u64 busy_ns;		/* time of planes that it is charged: flash.h */
};

struct owner {
	struct flash_usage usage;	/* in a root: sum of its tree */
	u32 id;				/* in a root */
	u32 pages;			/* pages that carry this very tag */
	u16 parent;			/* a root is its own parent */
	u16 children;			/* tags that point to this one */
	u16 hash_next;			/* next root in its bucket, or free tag */
	u16 rank;			/* most tags on a path that ends here */
};

struct owners {
	struct owner *owner;		/* by tag; 0 means no owner */
	u16 *bucket;			/* first tag of each hash value */
	u32 nr, mask;
	u16 free;			/* first free tag, or OWNER_NO_TAG */
	u64 refused;			/* times that no tag was free */
};

/* Makes room for @nr owners.  Returns 0 or -ENOMEM. */
int owners_init(struct owners *o, u32 nr);
void owners_exit(struct owners *o);

/* Returns the tag of @id; gives it one if it has none. */
u16 owner_tag(struct owners *o, u32 id);

/* A page with @tag was written. */
void owner_page_valid(struct owners *o, u16 tag);

/* A page with @tag was overwritten or trimmed. */
void owner_page_invalid(struct owners *o, u16 tag);

/* GC has passed over an outdated page with @tag, which is gone. */
void owner_page_collected(struct owners *o, u16 tag);

/* GC copied a valid page with @tag; returns the tag of the copy. */
u16 owner_page_copied(struct owners *o, u16 tag);

/* A command of the owner of @tag wrote a page. */
void owner_wrote(struct owners *o, u16 tag);

/* Planes were busy for the owner of @tag, for @ns. */
void owner_busy(struct owners *o, u16 tag, u64 ns);

/* Gives pages and counts of @from to @to.  @from may come again, as new. */
void owner_move(struct owners *o, u32 from, u32 to);

/* Returns false and zeroes if @id has no tag. */
bool owner_usage(const struct owners *o, u32 id, struct flash_usage *usage);

/* Returns the owner of a page that carries @tag. */
u32 owner_of_tag(const struct owners *o, u16 tag);

/* Returns the bytes that owners_init() allocates. */
u64 owners_bytes(u32 nr);

#endif /* MQFAIR_FLASH_OWNER_H */
