// SPDX-License-Identifier: GPL-2.0
/* The counts of owners against a recount over all pages, the *twin*. */
#include "tests/unit/unit.h"
#include "fixture.h"

enum {
	PAGES = 400,
	IDS = 40,
};

/* The twin has the state and the owner of each page. */
enum state { EMPTY, VALID, INVALID };

struct twin_page {
	u32 owner;
	u16 tag;
	enum state state;
};

struct twin {
	struct twin_page page[PAGES];
	u64 written[IDS], copied[IDS];
};

static void check(const struct owners *o, const struct twin *t)
{
	u32 id, i;

	for (id = 0; id < IDS; id++) {
		struct flash_usage usage;
		u64 valid = 0, invalid = 0;

		for (i = 0; i < PAGES; i++) {
			if (t->page[i].owner != id)
				continue;
			valid += t->page[i].state == VALID;
			invalid += t->page[i].state == INVALID;
		}
		owner_usage(o, id, &usage);
		assert_int_equal(usage.valid, valid);
		assert_int_equal(usage.invalid, invalid);
		assert_int_equal(usage.written, t->written[id]);
		assert_int_equal(usage.copied, t->copied[id]);
	}
	for (i = 0; i < PAGES; i++)
		if (t->page[i].state != EMPTY)
			assert_int_equal(owner_of_tag(o, t->page[i].tag),
					 t->page[i].owner);
}

static void page_step(struct owners *o, struct twin *t, struct random *r)
{
	struct twin_page *p = &t->page[random_below(r, PAGES)];
	u32 id = random_below(r, IDS);

	switch (p->state) {
	case EMPTY:
		p->tag = owner_tag(o, id);
		p->owner = owner_of_tag(o, p->tag);
		p->state = VALID;
		owner_page_valid(o, p->tag);
		owner_wrote(o, p->tag);
		t->written[p->owner]++;
		break;
	case VALID:
		if (random_once_in(r, 3)) {
			p->tag = owner_page_copied(o, p->tag);
			t->copied[p->owner]++;
			break;
		}
		owner_page_invalid(o, p->tag);
		p->state = INVALID;
		break;
	case INVALID:
		owner_page_collected(o, p->tag);
		p->state = EMPTY;
		break;
	}
}

static void owner_removed(struct owners *o, struct twin *t, u32 from, u32 to)
{
	struct flash_usage usage;
	u32 heir, i;

	if (from == to || from == FLASH_NO_OWNER ||
	    !owner_usage(o, from, &usage))
		return;
	owner_move(o, from, to);
	assert_false(owner_usage(o, from, &usage));
	/* Without a free tag for @to, the pages have no owner. */
	heir = owner_usage(o, to, &usage) ? to : FLASH_NO_OWNER;
	for (i = 0; i < PAGES; i++)
		if (t->page[i].owner == from && t->page[i].state != EMPTY)
			t->page[i].owner = heir;
	t->written[heir] += t->written[from];
	t->copied[heir] += t->copied[from];
	t->written[from] = 0;
	t->copied[from] = 0;
}

static void compare(u32 tags, const char *name)
{
	struct random r = random_seeded(name);
	static struct twin t;
	struct owners o;
	u64 i;

	memset(&t, 0, sizeof(t));
	assert_int_equal(owners_init(&o, tags), 0);
	for (i = 0; i < random_rounds(40000); i++) {
		if (random_once_in(&r, 40))
			owner_removed(&o, &t, random_below(&r, IDS),
				      random_below(&r, IDS));
		else
			page_step(&o, &t, &r);
		if (i % 16 == 0)
			check(&o, &t);
	}
	if (tags < IDS)
		assert_true(o.refused > 0);
	else
		assert_int_equal(o.refused, 0);
	owners_exit(&o);
}

static void counts_match_a_recount(void **state)
{
	(void)state;
	/* Tags never run out: each page may carry one of a removed owner. */
	compare(PAGES + IDS, "owner");
}

static void counts_match_a_recount_without_free_tags(void **state)
{
	(void)state;
	compare(12, "owner, few tags");
}

/* Each owner goes to the next one: paths to the last stay short. */
static void paths_are_short(void **state)
{
	enum {
		CHAIN = 20000
	};
	u16 *tags = port_zalloc(CHAIN * sizeof(*tags));
	struct flash_usage usage;
	struct owners o;
	u32 longest = 0, i;

	(void)state;
	assert_int_equal(owners_init(&o, CHAIN), 0);
	for (i = 0; i < CHAIN; i++) {
		tags[i] = owner_tag(&o, i + 1);
		owner_page_valid(&o, tags[i]);
	}
	for (i = 1; i < CHAIN; i++)
		owner_move(&o, i, i + 1);
	owner_usage(&o, CHAIN, &usage);
	assert_int_equal(usage.valid, CHAIN);
	for (i = 0; i < CHAIN; i++) {
		u32 steps = 0;
		u16 tag;

		for (tag = tags[i]; o.owner[tag].parent != tag;
		     tag = o.owner[tag].parent)
			steps++;
		longest = max(longest, steps);
	}
	assert_in_range(longest, 1, 16);
	owners_exit(&o);
	port_free(tags);
}

/* The tag of a removed owner is free when its last page is collected. */
static void tags_are_reused(void **state)
{
	struct owners o;
	u32 i;

	(void)state;
	assert_int_equal(owners_init(&o, 4), 0);
	for (i = 0; i < 1000; i++) {
		u16 tag = owner_tag(&o, 10 + i);

		owner_page_valid(&o, tag);
		owner_move(&o, 10 + i, 5);
		owner_page_invalid(&o, tag);
		owner_page_collected(&o, tag);
	}
	assert_int_equal(o.refused, 0);
	owners_exit(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_match_a_recount),
		cmocka_unit_test(counts_match_a_recount_without_free_tags),
		cmocka_unit_test(paths_are_short),
		cmocka_unit_test(tags_are_reused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
