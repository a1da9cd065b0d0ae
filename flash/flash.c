// SPDX-License-Identifier: GPL-2.0
/*
 * flash - a drive as a whole: its event loop, its reports, its creation
 *
 * Events are in a heap by time; events of the same time fire in the order in
 * which they were armed.  flash_advance() fires those that are due.  While an
 * event fires, f->now is the time at which it was due, not that of the call.
 * So a caller that comes after flash_next_ns() finds the same times in its
 * commands as one that comes exactly then.
 *
 * Example.  A read is submitted at 0 and takes 67 us, by four events.  A caller
 * that calls flash_advance() at 1000 us only gets the read with a done_ns of
 * 67 us.  With a budget of 3 events that call returns NULL, and flash_next_ns()
 * is 67 us: the caller calls again.
 *
 * Limits.  The drive has at most 2^31 pages of flash, spare included, and 65534
 * owners.
 *
 * Tested by tests/flash/timing.c (times), gc.c (sizes, reports) and curve.c
 * (the drives against published figures).
 */
#include "drive.h"

/* --------------------------------------------------------------- event loop */

/* The event leaves the heap before it fires, so it may arm itself again. */
static void event_fire(struct flash *f)
{
	struct flash_event *ev =
		container_of(heap_pop(&f->events), struct flash_event, node);

	f->now = ev->node.key;
	ev->armed = false;
	ev->fire(f, ev);
}

struct flash_cmd *flash_advance(struct flash *f, u64 now, u32 budget)
{
	struct flash_cmd *done;

	for (; flash_next_ns(f) <= now; budget--) {
		if (!budget)
			break;
		event_fire(f);
	}
	if (flash_next_ns(f) > now)
		f->now = max(f->now, now);
	done = f->done.first;
	f->done.first = NULL;
	return done;
}

u64 flash_next_ns(const struct flash *f)
{
	const struct heap_node *top = heap_top(&f->events);

	return top ? top->key : FLASH_NEVER;
}

u32 flash_outstanding(const struct flash *f)
{
	return f->outstanding;
}

void flash_retime(struct flash *f, const struct flash_params *p)
{
	f->params.command_ns = p->command_ns;
	f->params.read_fixed_ns = p->read_fixed_ns;
	f->params.write_fixed_ns = p->write_fixed_ns;
	f->params.link_ns = p->link_ns;
	f->params.channel_ns = p->channel_ns;
	f->params.read_ns = p->read_ns;
	f->params.program_ns = p->program_ns;
	f->params.erase_ns = p->erase_ns;
}

/* ------------------------------------------------------------------ reports */

const struct flash_params *flash_params_of(const struct flash *f)
{
	return &f->params;
}

u32 flash_pages(const struct flash *f)
{
	return f->pages;
}

struct flash_stats flash_stats(const struct flash *f)
{
	struct flash_stats stats = f->stats;

	stats.copied = f->ftl.copied;
	stats.erases = f->ftl.erases;
	stats.trimmed = f->ftl.trimmed;
	return stats;
}

u64 flash_amplification_permille(u64 written, u64 copied)
{
	return written ? div64_u64((written + copied) * 1000, written) : 1000;
}

bool flash_usage(const struct flash *f, u32 owner, struct flash_usage *usage)
{
	*usage = (struct flash_usage){ 0 };
	return !f->params.in_place && owner_usage(&f->ftl.owners, owner, usage);
}

bool flash_host_usage(const struct flash *f, u32 owner,
		      struct flash_usage *usage)
{
	*usage = (struct flash_usage){ 0 };
	return f->mode == FLASH_FTL_HOST && flash_usage(f, owner, usage);
}

bool flash_host_spent(const struct flash *f, struct flash_spent *spent)
{
	bool known = f->mode == FLASH_FTL_HOST && !f->params.in_place;

	*spent = known ? f->spent : (struct flash_spent){ 0 };
	if (!known)
		return false;
	spent->planes = drive_nr_planes(&f->params);
	spent->busy_ns = f->stats.read_busy_ns +
			 f->params.planes * (f->stats.program_busy_ns +
					     f->stats.gc_busy_ns);
	return true;
}

void flash_owner_move(struct flash *f, u32 from, u32 to)
{
	if (!f->params.in_place)
		owner_move(&f->ftl.owners, from, to);
}

void flash_set_watch(struct flash *f, const struct flash_watch *watch)
{
	f->ftl.watch = watch;
}

u32 flash_where(const struct flash *f, u32 page)
{
	return f->params.in_place ? FLASH_NOWHERE : f->ftl.page_at[page];
}

/* ------------------------------------------------- creation and destruction */

const char *flash_config_wrong(const struct flash_config *c)
{
	const char *wrong = flash_params_wrong(c->params);
	u64 pages, physical;

	if (wrong)
		return wrong;
	if (c->bytes & (c->params->page_bytes - 1))
		return "the size must be a multiple of the model's page";
	pages = div64_u64(c->bytes, c->params->page_bytes);
	if (pages <
	    (u64)flash_nr_dies(c->params) * flash_block_pages(c->params))
		return "the size must be at least one erase block for each die";
	if (pages > FLASH_PAGES_MAX)
		return "the size must be at most 2^31 pages";
	physical = (u64)flash_nr_dies(c->params) *
		   ftl_die_blocks(c->params, pages) *
		   flash_block_pages(c->params);
	if (physical > FLASH_PAGES_MAX)
		return "the size with the spare flash must be at most 2^31 pages";
	if (c->owners > OWNERS_MAX)
		return "the number of owners must be at most 65534";
	return NULL;
}

u64 flash_memory_bytes(const struct flash_config *c)
{
	const struct flash_params *p = c->params;

	return sizeof(struct flash) + (p->in_place ? 0 : ftl_bytes(c)) +
	       p->channels * sizeof(struct flash_channel) +
	       flash_nr_dies(p) * sizeof(struct flash_die) +
	       drive_nr_planes(p) * sizeof(struct flash_plane) +
	       FLASH_OPS * sizeof(struct flash_read);
}

static bool flash_alloc(struct flash *f)
{
	const struct flash_params *p = &f->params;

	f->channel = port_zalloc(p->channels * sizeof(*f->channel));
	f->die = port_zalloc(flash_nr_dies(p) * sizeof(*f->die));
	f->plane = port_zalloc(drive_nr_planes(p) * sizeof(*f->plane));
	f->ops = port_zalloc(FLASH_OPS * sizeof(*f->ops));
	return f->channel && f->die && f->plane && f->ops;
}

static void flash_free(struct flash *f)
{
	port_free(f->ops);
	port_free(f->plane);
	port_free(f->die);
	port_free(f->channel);
	port_free(f);
}

static void flash_init(struct flash *f)
{
	heap_init(&f->events);
	f->read_shift = port_ffs64(f->params.read_pages);
	controller_init(f);
	buffer_init(f);
	pipeline_init(f);
}

struct flash *flash_create(const struct flash_config *c)
{
	struct flash *f;

	if (flash_config_wrong(c))
		return NULL;
	f = port_zalloc(sizeof(*f));
	if (!f)
		return NULL;
	f->params = *c->params;
	f->mode = c->ftl;
	f->random = c->seed;
	f->pages = (u32)div64_u64(c->bytes, c->params->page_bytes);
	if (!flash_alloc(f))
		goto free;
	if (!c->params->in_place && ftl_init(&f->ftl, c))
		goto free;
	flash_init(f);
	return f;
free:
	flash_free(f);
	return NULL;
}

void flash_destroy(struct flash *f)
{
	port_assert(!f->outstanding);
	if (!f->params.in_place)
		ftl_exit(&f->ftl);
	flash_free(f);
}
