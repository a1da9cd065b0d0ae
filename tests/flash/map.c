// SPDX-License-Identifier: GPL-2.0
/*
 * The map of a drive against a reference, the *twin*: no page is lost, no page
 * is mistaken for another.
 *
 * The twin knows the latest version of every logical page.  It also has a
 * store, which flash/ has not: the version that lies in every physical page.
 * The callbacks of struct flash_watch carry versions through that store.  So
 * the physical page that the map names for a logical page must hold its latest
 * version, even after GC has copied it.
 */
#include "tests/unit/unit.h"
#include "fixture.h"

enum {
	CMDS = 24,
	OWNERS = 30,
	BLOCKS = 48,		/* capacity of a die; 5 more are spare: 10 % */
};

/* A physical page in the store. */
struct stored {
	u32 page;
	u32 owner;
	u64 version;		/* 0: erased */
};

/* A command that one of many users submits. */
struct user {
	struct flash_cmd cmd;
	bool busy;		/* cmd is submitted and not done */
};

struct twin {
	struct flash *f;
	u64 *latest;		/* version of each logical page; 0: none */
	u32 *writers;		/* commands outstanding that change the page */
	struct stored *store;	/* by physical page */
	u64 versions;		/* given out so far */
	u32 *next_at;		/* next page of each block: they go in order */
	u64 copied, erased;
	struct user user[CMDS];
};

static u32 block_of(const struct twin *t, u32 at)
{
	return at >> t->f->ftl.block_shift;
}

static void store_put(struct twin *t, u32 at, struct stored what)
{
	assert_true(t->store[at].version == 0);
	assert_int_equal(at, t->next_at[block_of(t, at)]++);
	t->store[at] = what;
}

static void placed(void *arg, u32 page, u32 at)
{
	struct twin *t = arg;

	assert_true(t->writers[page]);
	t->latest[page] = ++t->versions;
	store_put(t, at,
		  (struct stored){
			  .page = page,
			  .owner = t->f->writes.first->owner,
			  .version = t->versions,
		  });
}

static void copied(void *arg, u32 page, u32 from, u32 to)
{
	struct twin *t = arg;

	assert_int_equal(t->store[from].page, page);
	assert_true(t->store[from].version == t->latest[page]);
	store_put(t, to, t->store[from]);
	t->copied++;
}

static void dropped(void *arg, u32 page, u32 at)
{
	struct twin *t = arg;

	/* A command asked for it, and the version was the latest. */
	assert_true(t->writers[page]);
	assert_int_equal(t->store[at].page, page);
	assert_true(t->store[at].version == t->latest[page]);
	t->latest[page] = 0;
}

static void erased(void *arg, u32 first, u32 pages)
{
	struct twin *t = arg;
	u32 i;

	for (i = 0; i < pages; i++) {
		struct stored *s = &t->store[first + i];

		/* No latest version is erased where the map points to it. */
		assert_true(t->latest[s->page] != s->version ||
			    flash_where(t->f, s->page) != first + i);
		s->version = 0;
	}
	t->next_at[block_of(t, first)] = first;
	t->erased++;
}

/* Checks the version that a read of @page would find. */
static void check_page(const struct twin *t, u32 page)
{
	u32 at = flash_where(t->f, page);

	if (!t->latest[page]) {
		assert_int_equal(at, FLASH_NOWHERE);
		return;
	}
	assert_int_not_equal(at, FLASH_NOWHERE);
	assert_int_equal(t->store[at].page, page);
	assert_true(t->store[at].version == t->latest[page]);
}

static void check_audit(const struct twin *t)
{
	const char *wrong = audit(t->f);

	if (wrong)
		fail_msg("%s", wrong);
}

/* Checks the valid pages of every owner against the store. */
static void check_owners(const struct twin *t)
{
	u64 valid[OWNERS] = { 0 };
	struct flash_usage usage;
	u32 i;

	for (i = 0; i < flash_pages(t->f); i++)
		if (t->latest[i])
			valid[t->store[flash_where(t->f, i)].owner]++;
	for (i = 0; i < OWNERS; i++) {
		flash_usage(t->f, i, &usage);
		assert_int_equal(usage.valid, valid[i]);
	}
}

static void check_all(const struct twin *t)
{
	u32 i;

	for (i = 0; i < flash_pages(t->f); i++)
		check_page(t, i);
	check_audit(t);
	check_owners(t);
}

static void owner_removed(struct twin *t, struct random *r)
{
	u32 from = 1 + random_below(r, OWNERS - 1);
	u32 to = random_below(r, OWNERS), i;

	if (from == to)
		return;
	flash_owner_move(t->f, from, to);
	for (i = 0; i < flash_pages(t->f); i++)
		if (t->latest[i] &&
		    t->store[flash_where(t->f, i)].owner == from)
			t->store[flash_where(t->f, i)].owner = to;
}

/* Two outstanding changes of one page may end in any order. */
static bool range_busy(const struct twin *t, const struct flash_cmd *cmd)
{
	u32 i;

	for (i = 0; i < cmd->pages; i++)
		if (t->writers[cmd->page + i])
			return true;
	return false;
}

static void range_mark(struct twin *t, const struct flash_cmd *cmd, u32 by)
{
	u32 i;

	for (i = 0; i < cmd->pages; i++)
		t->writers[cmd->page + i] += by;
}

/* Three in four commands go to the first @hot thousandths of the pages. */
static void submit(struct twin *t, struct random *r, u64 now, u32 trims,
		   u32 hot)
{
	struct user *u = &t->user[random_below(r, CMDS)];
	u32 range = random_below(r, 4) ?
			    (u32)((u64)flash_pages(t->f) * hot / 1000) :
			    flash_pages(t->f);

	if (u->busy)
		return;
	u->cmd = (struct flash_cmd){
		.op = FLASH_WRITE,
		.page = random_below(r, range),
		.pages = 1 + random_below(r, random_below(r, 8) ? 4 : 90),
		.owner = random_below(r, OWNERS),
	};
	u->cmd.pages = min(u->cmd.pages, flash_pages(t->f) - u->cmd.page);
	if (random_below(r, 1000) < trims)
		u->cmd.op = FLASH_TRIM;
	else if (random_once_in(r, 4))
		u->cmd.op = FLASH_READ;
	if (u->cmd.op != FLASH_READ) {
		if (range_busy(t, &u->cmd))
			return;
		range_mark(t, &u->cmd, 1);
	}
	u->busy = true;
	flash_submit(t->f, &u->cmd, now);
}

static void completed(struct twin *t, struct flash_cmd *cmd, u64 now)
{
	struct user *u = container_of(cmd, struct user, cmd);
	u32 i;

	assert_true(u->busy);
	assert_true(cmd->done_ns <= now);
	u->busy = false;
	if (cmd->op != FLASH_READ)
		range_mark(t, cmd, ~0U);
	for (i = 0; i < cmd->pages; i++)
		if (!t->writers[cmd->page + i])
			check_page(t, cmd->page + i);
	for (i = 0; i < cmd->pages; i++)
		if (cmd->op != FLASH_READ)
			assert_int_equal(!t->latest[cmd->page + i],
					 cmd->op == FLASH_TRIM);
}

static void advance(struct twin *t, u64 now)
{
	struct flash_cmd *cmd = flash_advance(t->f, now, 64);

	while (cmd) {
		struct flash_cmd *next = cmd->next;

		completed(t, cmd, now);
		cmd = next;
	}
}

static void finish(struct twin *t, u64 *now)
{
	while (flash_next_ns(t->f) != FLASH_NEVER) {
		*now = max(*now, flash_next_ns(t->f));
		advance(t, *now);
	}
	assert_int_equal(flash_outstanding(t->f), 0);
}

static void twin_init(struct twin *t, const struct flash_watch *watch)
{
	u32 physical, i;

	t->f = fixture_create(&fixture_params, BLOCKS);
	physical = t->f->ftl.nr_dies * t->f->ftl.die_blocks
		   << t->f->ftl.block_shift;
	t->latest = port_zalloc(flash_pages(t->f) * sizeof(*t->latest));
	t->writers = port_zalloc(flash_pages(t->f) * sizeof(*t->writers));
	t->store = port_zalloc(physical * sizeof(*t->store));
	t->next_at = port_zalloc(physical * sizeof(*t->next_at));
	for (i = 0; i < physical; i++)
		t->next_at[i] = i << t->f->ftl.block_shift;
	flash_set_watch(t->f, watch);
}

static void twin_exit(struct twin *t)
{
	port_free(t->next_at);
	port_free(t->store);
	port_free(t->writers);
	port_free(t->latest);
	flash_destroy(t->f);
}

static void write_range(struct twin *t, u64 *now, u32 page, u32 pages)
{
	for (; pages; page++, pages--) {
		struct user *u = &t->user[0];

		u->cmd = (struct flash_cmd){
			.op = FLASH_WRITE,
			.page = page,
			.pages = 1,
		};
		u->busy = true;
		range_mark(t, &u->cmd, 1);
		flash_submit(t->f, &u->cmd, *now);
		while (u->busy) {
			*now = max(*now, flash_next_ns(t->f));
			advance(t, *now);
		}
	}
}

static void run_random(const char *name, u32 fill_permille, u32 trims, u32 hot)
{
	struct random r = random_seeded(name);
	struct twin *t = port_zalloc(sizeof(*t));
	const struct flash_watch watch = {
		t, placed, copied, dropped, erased,
	};
	u64 now = 0, i;

	twin_init(t, &watch);
	write_range(t, &now, 0,
		    (u32)((u64)flash_pages(t->f) * fill_permille / 1000));
	for (i = 0; i < random_rounds(60000); i++) {
		if (random_once_in(&r, 3))
			submit(t, &r, now, trims, hot);
		else if (flash_next_ns(t->f) != FLASH_NEVER)
			now = max(now, flash_next_ns(t->f));
		advance(t, now);
		if (random_once_in(&r, 500))
			owner_removed(t, &r);
		if (i % 256 == 0)
			check_audit(t);
		if (i % 1024 == 0)
			check_owners(t);
	}
	finish(t, &now);
	check_all(t);
	/* GC had much to do. */
	assert_true(t->erased > 500);
	assert_true(t->copied > t->versions / 4);
	twin_exit(t);
	port_free(t);
}

static void map_is_right(void **state)
{
	(void)state;
	run_random("map, full", 990, 0, 1000);
	run_random("map, trims", 900, 40, 1000);
	run_random("map, hot", 990, 5, 100);
}

/* Pages of one die stay, all others are overwritten: the worst case of F4. */
static void writes_go_on_beside_a_die_of_cold_pages(void **state)
{
	struct flash *f = fixture_create(&fixture_params, BLOCKS);
	u64 now = 0;
	u32 round, page;

	(void)state;
	fixture_fill(f, 1);
	for (round = 0; round < 40; round++)
		for (page = 0; page < flash_pages(f); page++)
			if (page / 8 % 4)
				fixture_do(f, &now, FLASH_WRITE, page, 1);
	fixture_settle(f, now);
	assert_null(audit(f));
	flash_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_is_right),
		cmocka_unit_test(writes_go_on_beside_a_die_of_cold_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
