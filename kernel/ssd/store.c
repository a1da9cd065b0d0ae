// SPDX-License-Identifier: GPL-2.0
/*
 * store - the written data, in pages of the machine's memory
 *
 * Pages are found by logical address; flash has no part in it.  A page exists
 * from its first write to the discard that covers it.  No request sleeps for
 * memory.  If there is none, the block layer runs the queue again a few
 * milliseconds later, and the kernel reclaims memory meanwhile.
 *
 * The lock of a page is held while the page is looked up, copied or freed.  So a
 * discard frees no page that another request reads.
 */
#include "ssd.h"

#include <linux/highmem.h>
#include <linux/xarray.h>

enum {
	/* A machine without a free page for this long gets none by waiting. */
	STARVED_MAX_S	= 10,
};

#define STORE_GFP	(GFP_NOWAIT | __GFP_NOWARN)

void store_init(struct ssd_store *s)
{
	u32 i;

	xa_init(&s->pages);
	for (i = 0; i < STORE_LOCKS; i++)
		spin_lock_init(&s->lock[i]);
}

void store_exit(struct ssd_store *s)
{
	unsigned long index;
	struct page *page;

	xa_for_each(&s->pages, index, page) {
		__free_page(page);
		cond_resched();
	}
	xa_destroy(&s->pages);
}

static spinlock_t *page_lock(struct ssd_store *s, unsigned long index)
{
	return &s->lock[index % STORE_LOCKS];
}

/* NULL if there is no memory now.  Under the lock of the page. */
static struct page *page_make(struct ssd_store *s, unsigned long index)
{
	struct page *page = alloc_page(STORE_GFP | __GFP_ZERO);

	lockdep_assert_held(page_lock(s, index));
	if (!page)
		return NULL;
	if (xa_err(xa_store(&s->pages, index, page, STORE_GFP))) {
		__free_page(page);
		return NULL;
	}
	atomic_long_inc(&s->nr_pages);
	return page;
}

/* A part of a segment that lies within one page of the store. */
struct piece {
	unsigned long index;
	u32 at, bytes;			/* in the page of the store */
	struct page *with;
	u32 with_at;
};

static void piece_read(struct ssd_store *s, const struct piece *p)
{
	struct page *page;

	spin_lock(page_lock(s, p->index));
	page = xa_load(&s->pages, p->index);
	if (page)
		memcpy_to_page(p->with, p->with_at, page_address(page) + p->at,
			       p->bytes);
	else
		memzero_page(p->with, p->with_at, p->bytes);
	spin_unlock(page_lock(s, p->index));
}

static bool piece_write(struct ssd_store *s, const struct piece *p)
{
	struct page *page;

	spin_lock(page_lock(s, p->index));
	page = xa_load(&s->pages, p->index) ?: page_make(s, p->index);
	if (page)
		memcpy_from_page(page_address(page) + p->at, p->with,
				 p->with_at, p->bytes);
	spin_unlock(page_lock(s, p->index));
	return page;
}

static bool segment_transfer(struct ssd_store *s, u64 at,
			     const struct bio_vec *segment, bool write)
{
	u32 done, bytes;

	for (done = 0; done < segment->bv_len; done += bytes, at += bytes) {
		struct piece p = {
			.index = at >> PAGE_SHIFT,
			.at = offset_in_page(at),
			.with = segment->bv_page,
			.with_at = segment->bv_offset + done,
		};

		bytes = min_t(u32, PAGE_SIZE - p.at, segment->bv_len - done);
		p.bytes = bytes;
		if (!write)
			piece_read(s, &p);
		else if (!piece_write(s, &p))
			return false;
	}
	return true;
}

static blk_status_t store_starved(struct ssd_store *s)
{
	u64 now = ktime_get_ns(), since = READ_ONCE(s->starved_ns);

	if (!since) {
		WRITE_ONCE(s->starved_ns, now);
		return BLK_STS_RESOURCE;
	}
	if (now - since < (u64)STARVED_MAX_S * NSEC_PER_SEC)
		return BLK_STS_RESOURCE;
	pr_warn_ratelimited(
		"mqfair-ssd: no memory for data in %d s, a write fails: make the drive smaller or the host larger\n",
		STARVED_MAX_S);
	return BLK_STS_IOERR;
}

/*
 * Copies the data of a read or a write.  BLK_STS_RESOURCE asks the block layer
 * to repeat the request from its beginning.  A write then copies data again.
 */
blk_status_t store_transfer(struct ssd_store *s, struct request *rq)
{
	u64 at = (u64)blk_rq_pos(rq) << SECTOR_SHIFT;
	bool write = rq_data_dir(rq) == WRITE;
	struct req_iterator iter;
	struct bio_vec segment;

	rq_for_each_segment(segment, rq, iter) {
		if (!segment_transfer(s, at, &segment, write))
			return store_starved(s);
		at += segment.bv_len;
	}
	if (write && READ_ONCE(s->starved_ns))
		WRITE_ONCE(s->starved_ns, 0);
	return BLK_STS_OK;
}

static void page_zero(struct ssd_store *s, u64 at, u32 bytes)
{
	unsigned long index = at >> PAGE_SHIFT;
	struct page *page;

	spin_lock(page_lock(s, index));
	page = xa_load(&s->pages, index);
	if (page)
		memset(page_address(page) + offset_in_page(at), 0, bytes);
	spin_unlock(page_lock(s, index));
}

static void page_drop(struct ssd_store *s, unsigned long index)
{
	struct page *page;

	spin_lock(page_lock(s, index));
	page = xa_erase(&s->pages, index);
	spin_unlock(page_lock(s, index));
	if (!page)
		return;
	atomic_long_dec(&s->nr_pages);
	__free_page(page);
}

/* The range reads as zeroes from now on.  Frees the pages that lie whole in it. */
void store_discard(struct ssd_store *s, u64 at, u64 bytes)
{
	u64 end = at + bytes, first = round_up(at, PAGE_SIZE);
	u64 last = round_down(end, PAGE_SIZE);
	unsigned long index;
	struct page *page;

	if (at < first)
		page_zero(s, at, min(first, end) - at);
	if (last < end && last >= first)
		page_zero(s, last, end - last);
	if (first >= last)
		return;
	xa_for_each_range(&s->pages, index, page, first >> PAGE_SHIFT,
			  (last - 1) >> PAGE_SHIFT)
		page_drop(s, index);
}
