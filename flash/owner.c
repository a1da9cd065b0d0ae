// SPDX-License-Identifier: GPL-2.0
/*
 * owner - tags, the forest that they form, and the counts.  See owner.h.
 *
 * Owners that are known are found by a hash of their number.  Only the root of
 * a tree is in the hash; free tags are a list through the same member.
 */
#include "owner.h"

static u16 *bucket_of(const struct owners *o, u32 id)
{
	/* Knuth's multiplicative hash; its upper half is mixed better. */
	return &o->bucket[(id * 2654435769U >> 16) & o->mask];
}

static u32 buckets_for(u32 nr)
{
	return nr ? 1U << port_fls64(nr) : 1;
}

/* ------------------------------------------------------------------ tags */

static u16 tag_root(const struct owners *o, u16 tag)
{
	while (o->owner[tag].parent != tag)
		tag = o->owner[tag].parent;
	return tag;
}

/* The root tag of @id, or OWNER_NO_TAG. */
static u16 tag_find(const struct owners *o, u32 id)
{
	u16 tag = *bucket_of(o, id);

	while (tag != OWNER_NO_TAG && o->owner[tag].id != id)
		tag = o->owner[tag].hash_next;
	return tag;
}

static void tag_name(struct owners *o, u16 tag, u32 id)
{
	u16 *bucket = bucket_of(o, id);

	o->owner[tag].id = id;
	o->owner[tag].hash_next = *bucket;
	*bucket = tag;
}

static void tag_unname(struct owners *o, u16 tag)
{
	u16 *at = bucket_of(o, o->owner[tag].id);

	while (*at != tag)
		at = &o->owner[*at].hash_next;
	*at = o->owner[tag].hash_next;
}

static void tag_free(struct owners *o, u16 tag)
{
	o->owner[tag].hash_next = o->free;
	o->free = tag;
}

/* Frees @tag if it is unused, and then the tags above it that are, too. */
static void tag_release(struct owners *o, u16 tag)
{
	while (o->owner[tag].parent != tag && !o->owner[tag].pages &&
	       !o->owner[tag].children) {
		u16 parent = o->owner[tag].parent;

		tag_free(o, tag);
		o->owner[parent].children--;
		tag = parent;
	}
}

static u16 tag_take(struct owners *o, u32 id)
{
	u16 tag = o->free;

	if (tag == OWNER_NO_TAG)
		return tag;
	o->free = o->owner[tag].hash_next;
	o->owner[tag] = (struct owner){ .parent = tag };
	tag_name(o, tag, id);
	return tag;
}

u16 owner_tag(struct owners *o, u32 id)
{
	u16 tag = tag_find(o, id);

	if (likely(tag != OWNER_NO_TAG))
		return tag;
	tag = tag_take(o, id);
	if (tag != OWNER_NO_TAG)
		return tag;
	o->refused++;
	return tag_find(o, FLASH_NO_OWNER);
}

/* ----------------------------------------------------------------- pages */

static struct flash_usage *usage_of(struct owners *o, u16 tag)
{
	return &o->owner[tag_root(o, tag)].usage;
}

void owner_page_valid(struct owners *o, u16 tag)
{
	o->owner[tag].pages++;
	usage_of(o, tag)->valid++;
}

void owner_page_invalid(struct owners *o, u16 tag)
{
	struct flash_usage *usage = usage_of(o, tag);

	usage->valid--;
	usage->invalid++;
}

void owner_page_collected(struct owners *o, u16 tag)
{
	usage_of(o, tag)->invalid--;
	o->owner[tag].pages--;
	tag_release(o, tag);
}

u16 owner_page_copied(struct owners *o, u16 tag)
{
	u16 root = tag_root(o, tag);

	o->owner[root].usage.copied++;
	if (root != tag) {
		o->owner[root].pages++;
		o->owner[tag].pages--;
		tag_release(o, tag);
	}
	return root;
}

void owner_wrote(struct owners *o, u16 tag)
{
	usage_of(o, tag)->written++;
}

void owner_busy(struct owners *o, u16 tag, u64 ns)
{
	usage_of(o, tag)->busy_ns += ns;
}

/* ---------------------------------------------------------------- owners */

static void usage_add(struct flash_usage *to, const struct flash_usage *from)
{
	to->valid += from->valid;
	to->invalid += from->invalid;
	to->written += from->written;
	to->copied += from->copied;
	to->busy_ns += from->busy_ns;
}

void owner_move(struct owners *o, u32 from, u32 to)
{
	u16 gone = tag_find(o, from), heir, root, child;

	if (from == to || from == FLASH_NO_OWNER || gone == OWNER_NO_TAG)
		return;
	heir = owner_tag(o, to);
	to = o->owner[heir].id;
	tag_unname(o, gone);
	tag_unname(o, heir);
	/* The deeper tree is on top, so depth grows as the logarithm only. */
	root = o->owner[gone].rank > o->owner[heir].rank ? gone : heir;
	child = root == gone ? heir : gone;
	if (o->owner[root].rank == o->owner[child].rank)
		o->owner[root].rank++;
	usage_add(&o->owner[root].usage, &o->owner[child].usage);
	o->owner[child].parent = root;
	o->owner[root].children++;
	tag_name(o, root, to);
	tag_release(o, child);
}

bool owner_usage(const struct owners *o, u32 id, struct flash_usage *usage)
{
	u16 tag = tag_find(o, id);

	if (tag == OWNER_NO_TAG) {
		*usage = (struct flash_usage){ 0 };
		return false;
	}
	*usage = o->owner[tag].usage;
	return true;
}

u32 owner_of_tag(const struct owners *o, u16 tag)
{
	return o->owner[tag_root(o, tag)].id;
}

/* ------------------------------------------------- creation and destruction */

u64 owners_bytes(u32 nr)
{
	return (nr + 1ULL) * sizeof(struct owner) +
	       buckets_for(nr) * sizeof(u16);
}

int owners_init(struct owners *o, u32 nr)
{
	u32 i;

	*o = (struct owners){ .nr = nr,
			      .mask = buckets_for(nr) - 1,
			      .free = OWNER_NO_TAG };
	o->owner = port_zalloc((nr + 1ULL) * sizeof(*o->owner));
	o->bucket = port_zalloc((o->mask + 1ULL) * sizeof(*o->bucket));
	if (!o->owner || !o->bucket) {
		owners_exit(o);
		return -ENOMEM;
	}
	for (i = 0; i <= o->mask; i++)
		o->bucket[i] = OWNER_NO_TAG;
	for (i = nr + 1; i-- > 0;)
		tag_free(o, (u16)i);
	tag_take(o, FLASH_NO_OWNER);
	return 0;
}

void owners_exit(struct owners *o)
{
	port_free(o->bucket);
	port_free(o->owner);
	o->bucket = NULL;
	o->owner = NULL;
}
