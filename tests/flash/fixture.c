// SPDX-License-Identifier: GPL-2.0
/* A small drive, and commands for it: see fixture.h. */
#include "fixture.h"

const struct flash_params fixture_params = {
	.name = "fixture",
	.channels = 2,
	.dies = 2,
	.planes = 2,
	.page_bytes = 4096,
	.read_pages = 2,
	.program_pages = 8,
	.block_programs = 4,
	.spare_permille = 100,
	.gc_start = 2,
	.gc_stop = 3,
	.buffer_pages = 64,
	.command_ns = 1 * US,
	.read_fixed_ns = 5 * US,
	.write_fixed_ns = 3 * US,
	.link_ns = 1 * US,
	.channel_ns = 10 * US,
	.read_ns = 50 * US,
	.program_ns = 500 * US,
	.erase_ns = 2000 * US,
	.read_burst = 2,
};

struct flash *fixture_create_ftl(const struct flash_params *p, u32 blocks,
				 enum flash_ftl ftl)
{
	struct flash_config c = {
		.params = p,
		.bytes = (u64)blocks * flash_nr_dies(p) * flash_block_pages(p) *
			 p->page_bytes,
		.owners = 1000,
		.ftl = ftl,
	};
	const char *wrong = flash_config_wrong(&c);
	struct flash *f = flash_create(&c);

	if (wrong)
		fprintf(stderr, "fixture: %s\n", wrong);
	port_assert(f);
	return f;
}

struct flash *fixture_create(const struct flash_params *p, u32 blocks)
{
	return fixture_create_ftl(p, blocks, FLASH_FTL_HOST);
}

void fixture_fill(struct flash *f, u32 owner)
{
	struct flash_fill fill = { .pages = flash_pages(f), .owner = owner };

	while (flash_fill(f, &fill, 1000))
		;
}

u64 fixture_settle(struct flash *f, u64 now)
{
	while (flash_next_ns(f) != FLASH_NEVER) {
		now = max(now, flash_next_ns(f));
		flash_advance(f, now, 64);
	}
	return now;
}

u64 fixture_do(struct flash *f, u64 *now, u8 op, u32 page, u32 pages)
{
	struct flash_cmd cmd = { .op = op, .page = page, .pages = pages };
	struct flash_cmd *done = NULL;

	flash_submit(f, &cmd, *now);
	while (!done) {
		port_assert(flash_next_ns(f) != FLASH_NEVER);
		*now = max(*now, flash_next_ns(f));
		done = flash_advance(f, *now, 1);
	}
	port_assert(done == &cmd && !done->next);
	return cmd.done_ns - cmd.submit_ns;
}

static void load_submit(struct flash *f, struct fixture_load *load, u64 *next,
			struct flash_cmd *cmd, u64 now)
{
	struct random r = { .state = load->state };
	u32 places = load->range / load->pages;
	u32 place = load->random ? random_below(&r, places) :
				   (u32)((*next)++ % places);

	load->state = r.state;
	cmd->op = load->op;
	cmd->page = load->first + place * load->pages;
	cmd->pages = load->pages;
	cmd->owner = load->owner;
	flash_submit(f, cmd, now);
}

/* Counts @cmd, the @done-th to end, if all commands were outstanding then. */
static void load_count(struct fixture_load *load, u64 done,
		       const struct flash_cmd *cmd, u64 *began)
{
	if (done <= load->depth) {
		*began = cmd->done_ns;
		return;
	}
	load->counted++;
	load->latency_ns += cmd->done_ns - cmd->submit_ns;
	load->elapsed_ns = cmd->done_ns - *began;
	if (load->latencies)
		histogram_add(load->latencies, cmd->done_ns - cmd->submit_ns);
}

void fixture_run(struct flash *f, struct fixture_load *load, u64 *now)
{
	struct flash_cmd *cmds = port_zalloc(load->depth * sizeof(*cmds));
	u64 began = *now, next = 0, done = 0, left = load->ios;
	u32 i;

	port_assert(cmds);
	if (!load->range)
		load->range = flash_pages(f);
	load->counted = 0;
	load->latency_ns = 0;
	for (i = 0; i < load->depth && left; i++, left--)
		load_submit(f, load, &next, &cmds[i], *now);
	while (flash_outstanding(f)) {
		struct flash_cmd *cmd;

		port_assert(flash_next_ns(f) != FLASH_NEVER);
		*now = max(*now, flash_next_ns(f));
		cmd = flash_advance(f, *now, 64);
		while (cmd) {
			struct flash_cmd *following = cmd->next;

			done++;
			if (left) {
				load_count(load, done, cmd, &began);
				left--;
				load_submit(f, load, &next, cmd, *now);
			}
			cmd = following;
		}
	}
	load->latency_ns /= max(load->counted, 1ULL);
	port_free(cmds);
}
