/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mqfq - the state and the hooks of mqfq.c
 *
 * Another scheduler may order requests as mqfq does, with shares of its own
 * kind: ifq.c is one.  Its state, sched.own, begins with struct mqfq, and its
 * hooks call these.  Each contract is that of the hook in struct sched_ops.
 */
#ifndef MQFAIR_MQFQ_H
#define MQFAIR_MQFQ_H

#include "mqfq_params.h"
#include "core/engine.h"
#include "core/tag_order.h"
#include "mt/mindicator.h"
#include "mt/wheel.h"

struct run;

struct mqfq {
	struct sched *sched;		/* I */
	struct mindicator tags;
	struct slots slots;
	struct wheel wheel;		/* throttled queues, at T > 0 */
	atomic64_t vt __port_cacheline;	/* virtual time; only grows */
	struct queue_set throttled __port_cacheline;	/* those at T = 0 */
	struct chassis chassis;
};

/* queue.own */
struct mqfq_queue {
	struct tag_order order;		/* Q */
	u32 bucket;			/* Q: of the wheel, while parked */
	bool published;			/* Q: the mindicator has the head tag */
};

static inline struct mqfq_queue *mqfq_queue_of(const struct queue *q)
{
	return q->own;
}

static inline vtime_t mqfq_vt(const struct mqfq *m)
{
	return (vtime_t)atomic64_read(&m->vt);
}

enum {
	/*
	 * An automatic T is worth some requests of each flow, of this cost at
	 * most.  A drive does larger ones more slowly than virtual time passes.
	 */
	T_COST_MOST = 1 << 12,
};

/* Returns the T that every request has at least. */
static inline u64 mqfq_least_threshold(const struct sched *s)
{
	return READ_ONCE(mqfq_params(&s->params)->threshold);
}

/* Returns T for a request of @f that costs @cost: I2. */
static inline u64 mqfq_threshold(const struct sched *s, const struct flow *f,
				 u32 cost)
{
	const struct mqfq_params *p = mqfq_params(&s->params);
	u64 ios = (u64)READ_ONCE(p->least_ios) * min(cost, (u32)T_COST_MOST);

	return max(mqfq_least_threshold(s),
		   vtime_at(0, 0, (u64)atomic64_read(&f->inv), ios));
}

/* Raises virtual time to @to, if it is less (I1). */
void mqfq_raise_vt(struct mqfq *m, vtime_t to);

/*
 * sched.own begins with struct mqfq, zeroed.  Returns 0, or -errno with nothing
 * left allocated.
 */
int mqfq_init(struct sched *s);
void mqfq_exit(struct sched *s);

/*
 * The insert hook with a virtual time: a flow that has no request waiting
 * starts at @vt or later.  Returns true if the flow has become active.
 */
bool mqfq_insert_at(struct queue *q, struct io *io, u64 now, vtime_t vt,
		    struct wake *wake);

void mqfq_merge(struct queue *q, struct io *io, u32 bytes);
enum dispatch_result mqfq_dispatch(struct queue *q, u64 now, struct io **out,
			   struct wake *wake);
bool mqfq_send(struct queue *q, struct io *first, u32 nr, u64 now,
	       struct wake *wake);
/* The same.  If it returns true, @r->woke tells whether the flow has become active. */
bool mqfq_send_run(struct queue *q, struct run *r, u64 now, struct wake *wake);
void mqfq_block(struct queue *q, struct wake *wake);
void mqfq_complete(struct io *io, u64 now, struct wake *wake);
void mqfq_requeue(struct io *io, struct wake *wake);
void mqfq_tick(struct sched *s, u64 now, struct wake *wake);
void mqfq_tune(struct sched *s, const struct sched_params *p,
	       struct wake *wake);
void mqfq_report(const struct sched *s, struct report *r);
void mqfq_report_flow(const struct flow *f, struct report *r);

#endif /* MQFAIR_MQFQ_H */
