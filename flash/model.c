// SPDX-License-Identifier: GPL-2.0
/*
 * model - the table of drives, and the published figures that they must reach
 *
 * Marks say where a number comes from:
 *   [S]  A data sheet or a published paper, named at the drive.
 *   [C]  Our choice, within the range of such drives; their makers publish none.
 *   [F]  Fitted, with the other numbers given: it makes the model reach a figure
 *	  of flash_targets[].
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
};

const struct flash_params flash_models[] = {
	/*
	 * Intel SSD DC P3700.  Product specification 330566: 20 nm MLC, PCIe
	 * 3.0 x4, 2800 MB/s reading and 2000 MB/s writing in order, 460 000
	 * and 175 000 IOPS at random, 20 us for a write.  The controller has
	 * 18 channels (press at its launch, 2014).
	 */
	{
		.name = "p3700",
		.channels = 18,			/* [S] */
		.dies = 2,			/* [F] 460 000 IOPS */
		.planes = 1,			/* [C] two that read together */
		.page_bytes = 4096,
		.read_pages = 8,		/* [C] 2 x 16 KiB */
		.program_pages = 8,		/* [C] the same two */
		.block_programs = 32,		/* 1 MiB: see model.h */
		.spare_permille = 340,		/* [F] 175 000 IOPS written */
		.gc_start = 2,			/* [C] */
		.gc_stop = 3,			/* [C] */
		.buffer_pages = 2048,		/* [C] 8 MiB */
		.command_ns = 1 * US,		/* [C] */
		.read_fixed_ns = 6 * US,	/* [C] 87 us at depth 1 */
		.write_fixed_ns = 17 * US,	/* [S] 20 us in all */
		.link_ns = 1463,		/* [S] 2800 MB/s */
		.channel_ns = 12 * US,		/* [C] 333 MB/s */
		.read_ns = 66 * US,		/* [F] 460 000 IOPS */
		.program_ns = 494 * US,		/* [F] 2000 MB/s */
		.erase_ns = 300 * US,		/* [C] 4.8 ms for 16 MiB */
		.read_burst = 4,		/* [C] */
	},
	/*
	 * Intel SSD DC P4500 2 TB.  Lenovo Press LP0758 after Intel's
	 * specification: 3D TLC, PCIe 3.0 x4, 3.2 GB/s reading and 1.05 GB/s
	 * writing in order, 490 000 and 38 000 IOPS at random, 85 us for a
	 * read at random, 20 us for a write.  The controller has 12 channels
	 * (press, 2017 and 2020).
	 */
	{
		.name = "p4500",
		.channels = 12,			/* [S] */
		.dies = 3,			/* [F] 490 000 IOPS */
		.planes = 1,			/* [C] as above */
		.page_bytes = 4096,
		.read_pages = 8,		/* [C] */
		.program_pages = 8,		/* [C] */
		.block_programs = 32,
		.spare_permille = 110,		/* [F] 38 000 IOPS written */
		.gc_start = 2,			/* [C] */
		.gc_stop = 3,			/* [C] */
		.buffer_pages = 2048,		/* [C] */
		.command_ns = 1 * US,		/* [C] */
		.read_fixed_ns = 9 * US,	/* [F] 85 us at depth 1 */
		.write_fixed_ns = 17 * US,	/* [S] 20 us in all */
		.link_ns = 1280,		/* [S] 3200 MB/s */
		.channel_ns = 8 * US,		/* [C] 512 MB/s */
		.read_ns = 66 * US,		/* [F] 490 000 IOPS */
		.program_ns = 1060 * US,	/* [F] 1050 MB/s */
		.erase_ns = 300 * US,		/* [C] */
		.read_burst = 4,		/* [C] */
	},
	/*
	 * Samsung 980 PRO 1 TB.  flash_targets[] has points of a measured
	 * curve.  Vendor's data: 8 channels, 128-layer TLC, PCIe 4.0 x4, 7000
	 * MB/s reading, 2000 MB/s writing TLC, 60 000 IOPS written at depth 1.
	 * Its SLC cache is not modelled: this is the drive after the cache is
	 * full.
	 */
	{
		.name = "980pro",
		.channels = 8,			/* [S] */
		.dies = 2,			/* [S] 16 of 512 Gbit */
		.planes = 2,			/* [S] */
		.page_bytes = 4096,
		.read_pages = 4,		/* [S] 16 KiB */
		.program_pages = 16,		/* [C] 64 KiB */
		.block_programs = 16,
		.spare_permille = 90,		/* [S] 9 % */
		.gc_start = 2,			/* [C] */
		.gc_stop = 3,			/* [C] */
		.buffer_pages = 1024,		/* [C] */
		.command_ns = 1 * US,		/* [S] a million IOPS rated */
		.read_fixed_ns = 18 * US,	/* [F] 60 us at depth 1 */
		.write_fixed_ns = 15 * US,	/* [S] 60 000 IOPS at depth 1 */
		.link_ns = 585,			/* [S] 7000 MB/s */
		.channel_ns = 4 * US,		/* [F] 140 us for 64 KiB */
		.read_ns = 36 * US,		/* [F] 790 000 IOPS */
		.program_ns = 460 * US,		/* [F] 2000 MB/s */
		.erase_ns = 200 * US,		/* [C] 3.5 ms for 18 MiB */
		.read_burst = 4,		/* [C] */
	},
	/*
	 * A target that serves memory over a fast network, the second device
	 * of Hedayati et al., Multi-Queue Fair Queueing, USENIX ATC 2019: 4 M
	 * IOPS of 1 KiB.  The network adds a few microseconds (section 1).
	 */
	{
		.name = "fabric",
		.channels = 1,
		.dies = 64,			/* [C] with read_ns: more than 4 M */
		.planes = 1,
		.page_bytes = 1024,
		.read_pages = 4,		/* [C] */
		.program_pages = 4,
		.block_programs = 1,
		.buffer_pages = 16,
		.gc_start = 1,
		.gc_stop = 2,
		.command_ns = 250,		/* [F] 4 M IOPS */
		.read_fixed_ns = 6 * US,	/* [C] two ways over the network */
		.write_fixed_ns = 6 * US,	/* [C] */
		.link_ns = 82,			/* [C] 100 Gbit/s */
		.read_ns = 12 * US,		/* [C] the target's software */
		.program_ns = 12 * US,		/* [C] */
		.read_burst = 4,
		.in_place = true,
	},
	/*
	 * A drive as small as the emulated one of Lee, Han, Shin (hwabc), of
	 * which no figure is published.  Sixteen requests saturate it, and it
	 * reads about as much as it writes.  It has four dies and the times of
	 * the P4500.
	 */
	{
		.name = "four-dies",
		.channels = 4,			/* [C] */
		.dies = 1,
		.planes = 1,
		.page_bytes = 4096,
		.read_pages = 4,		/* [C] */
		.program_pages = 16,		/* [C] */
		.block_programs = 16,
		.spare_permille = 80,		/* [C] */
		.gc_start = 2,
		.gc_stop = 3,
		.buffer_pages = 256,		/* [C] 1 MiB */
		.command_ns = 1 * US,
		.read_fixed_ns = 9 * US,
		.write_fixed_ns = 17 * US,
		.link_ns = 1280,
		.channel_ns = 8 * US,
		.read_ns = 66 * US,
		.program_ns = 900 * US,		/* [C] */
		.erase_ns = 300 * US,
		.read_burst = 4,
	},
	{ .name = NULL },
};

#define P3700	"Intel SSD DC P3700 product specification"
#define P4500	"Intel SSD DC P4500 specification, 2 TB"
#define CURVE	"measured on a Samsung 980 PRO"
#define FABRIC	"Hedayati et al., USENIX ATC 2019"

const struct flash_target flash_targets[] = {
	{ "980pro", "latency_ns", 1, 4096, false, true, true, 60 * US, CURVE },
	{ "980pro", "iops", 4, 4096, false, true, true, 64 * 1000, CURVE },
	/* The machine that measured was partly the limit, so not judged. */
	{ "980pro", "iops", 32, 4096, false, true, false, 259 * 1000, CURVE },
	{ "980pro", "iops", 0, 4096, false, true, true, 790 * 1000, CURVE },
	{ "980pro", "latency_ns", 1, 65536, false, true, true, 140 * US, CURVE },
	{ "p3700", "iops", 0, 4096, false, true, true, 460 * 1000, P3700 },
	{ "p3700", "bytes_per_s", 0, 131072, false, false, true,
	  2800ULL * 1000 * 1000, P3700 },
	{ "p3700", "bytes_per_s", 0, 131072, true, false, true,
	  2000ULL * 1000 * 1000, P3700 },
	{ "p3700", "iops", 0, 4096, true, true, true, 175 * 1000, P3700 },
	{ "p4500", "latency_ns", 1, 4096, false, true, true, 85 * US, P4500 },
	{ "p4500", "iops", 0, 4096, false, true, true, 490 * 1000, P4500 },
	{ "p4500", "bytes_per_s", 0, 131072, false, false, true,
	  3200ULL * 1000 * 1000, P4500 },
	{ "p4500", "bytes_per_s", 0, 131072, true, false, true,
	  1050ULL * 1000 * 1000, P4500 },
	{ "p4500", "iops", 0, 4096, true, true, true, 38 * 1000, P4500 },
	{ "fabric", "iops", 0, 1024, false, true, true, 4 * 1000 * 1000, FABRIC },
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
	return NULL;
}
