// SPDX-License-Identifier: GPL-2.0
/*
 * request - requests of the block layer as commands of the model
 *
 * A timer is armed for the model's next event, under ssd_drive.lock, so that
 * arming and firing agree on the time.  The work of one interrupt is bounded.
 * If more than EVENTS_MAX events are due, the timer fires again after a pause.
 * A pause delays completions.  It does not delay the drive, which has the
 * model's clock.
 */
#include "ssd.h"

enum {
	EVENTS_MAX	= 256,		/* events of the model per interrupt */
	PAUSE_NS	= 20000,	/* between interrupts if more are due */
};

static struct ssd_request *ssd_request_of(struct flash_cmd *cmd)
{
	return container_of(cmd, struct ssd_request, cmd);
}

/* --------------------------------------------------------------------- time */

static void timer_arm(struct ssd_drive *d, u64 ns)
{
	lockdep_assert_held(&d->lock);
	if (ns >= d->armed_ns)
		return;
	d->armed_ns = ns;
	hrtimer_start(&d->timer, ns_to_ktime(ns), HRTIMER_MODE_ABS);
}

static void cmds_count(struct ssd_drive *d, const struct flash_cmd *cmd,
		       u64 now)
{
	lockdep_assert_held(&d->lock);
	for (; cmd; cmd = cmd->next) {
		d->commands++;
		d->service_ns += cmd->done_ns - cmd->submit_ns;
		d->late_ns += now - cmd->done_ns;
	}
}

/* A completed request may be reused at once, so `next` is read before. */
static void cmds_complete(struct flash_cmd *cmd)
{
	struct flash_cmd *next;

	for (; cmd; cmd = next) {
		next = cmd->next;
		blk_mq_complete_request(blk_mq_rq_from_pdu(ssd_request_of(cmd)));
	}
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct ssd_drive *d = container_of(timer, struct ssd_drive, timer);
	struct flash_cmd *done, *cmd;
	unsigned long flags;
	u64 now, next;

	raw_spin_lock_irqsave(&d->lock, flags);
	d->armed_ns = FLASH_NEVER;
	now = ktime_get_ns();
	done = flash_advance(d->flash, now, EVENTS_MAX);
	for (cmd = done; cmd; cmd = cmd->next)
		list_del(&ssd_request_of(cmd)->node);
	cmds_count(d, done, now);
	next = flash_next_ns(d->flash);
	timer_arm(d, next > now ? next : now + PAUSE_NS);
	raw_spin_unlock_irqrestore(&d->lock, flags);
	cmds_complete(done);
	return HRTIMER_NORESTART;
}

void requests_init(struct ssd_drive *d)
{
	INIT_LIST_HEAD(&d->outstanding);
	d->armed_ns = FLASH_NEVER;
	hrtimer_setup(&d->timer, timer_fired, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS);
}

/* The disk is gone, but the model may still be collecting garbage. */
void requests_exit(struct ssd_drive *d)
{
	WARN_ON_ONCE(!list_empty(&d->outstanding));
	hrtimer_cancel(&d->timer);
}

/* ----------------------------------------------------------------- requests */

/* The command covers each page that the request touches. */
static void cmd_cover(const struct ssd_drive *d, const struct request *rq,
		      struct flash_cmd *cmd)
{
	u64 end = blk_rq_pos(rq) + blk_rq_sectors(rq) - 1;

	cmd->page = blk_rq_pos(rq) >> d->page_shift;
	cmd->pages = (u32)(end >> d->page_shift) - cmd->page + 1;
}

/* The command covers each page that lies whole in the request; perhaps none. */
static void cmd_cover_whole(const struct ssd_drive *d, const struct request *rq,
			    struct flash_cmd *cmd)
{
	u64 mask = BIT_ULL(d->page_shift) - 1;
	u64 first = (blk_rq_pos(rq) + mask) >> d->page_shift;
	u64 end = (blk_rq_pos(rq) + blk_rq_sectors(rq)) >> d->page_shift;

	cmd->page = first;
	cmd->pages = end > first ? end - first : 0;
	/* The flush is the only command of the model without pages. */
	if (!cmd->pages)
		cmd->op = FLASH_FLUSH;
}

/*
 * Copies the data and describes the command.  The drive's buffer survives a
 * loss of power.  So FUA needs no extra command, and a flush has no pages.
 */
static blk_status_t cmd_make(struct ssd_drive *d, struct request *rq,
			     struct flash_cmd *cmd)
{
	switch (req_op(rq)) {
	case REQ_OP_READ:
		cmd->op = FLASH_READ;
		cmd_cover(d, rq, cmd);
		return store_transfer(&d->store, rq);
	case REQ_OP_WRITE:
		cmd->op = FLASH_WRITE;
		cmd_cover(d, rq, cmd);
		return store_transfer(&d->store, rq);
	case REQ_OP_DISCARD:
		cmd->op = FLASH_TRIM;
		cmd_cover_whole(d, rq, cmd);
		store_discard(&d->store, (u64)blk_rq_pos(rq) << SECTOR_SHIFT,
			      blk_rq_bytes(rq));
		return BLK_STS_OK;
	case REQ_OP_FLUSH:
		cmd->op = FLASH_FLUSH;
		cmd->page = 0;
		cmd->pages = 0;
		return BLK_STS_OK;
	default:
		return BLK_STS_NOTSUPP;
	}
}

static void ssd_submit(struct ssd_drive *d, struct request *rq)
{
	struct ssd_request *r = blk_mq_rq_to_pdu(rq);
	unsigned long flags;
	u64 now, next;

	raw_spin_lock_irqsave(&d->lock, flags);
	now = ktime_get_ns();
	/* owner.c explains why this needs the lock. */
	r->cmd.owner = owner_of_request(rq);
	r->cmd.ahead = mqfair_host_ftl_goes_ahead(rq);
	list_add_tail(&r->node, &d->outstanding);
	flash_submit(d->flash, &r->cmd, now);
	next = flash_next_ns(d->flash);
	/* For an overdue event the timer is armed already, perhaps after a pause. */
	if (next > now)
		timer_arm(d, next);
	raw_spin_unlock_irqrestore(&d->lock, flags);
}

static blk_status_t ssd_queue_rq(struct blk_mq_hw_ctx *hctx,
				 const struct blk_mq_queue_data *bd)
{
	struct ssd_drive *d = hctx->queue->queuedata;
	struct ssd_request *r = blk_mq_rq_to_pdu(bd->rq);
	blk_status_t status = cmd_make(d, bd->rq, &r->cmd);

	if (unlikely(status != BLK_STS_OK))
		return status;
	blk_mq_start_request(bd->rq);
	ssd_submit(d, bd->rq);
	return BLK_STS_OK;
}

static void ssd_complete_rq(struct request *rq)
{
	blk_mq_end_request(rq, BLK_STS_OK);
}

const struct blk_mq_ops ssd_mq_ops = {
	.queue_rq	= ssd_queue_rq,
	.complete	= ssd_complete_rq,
};
