/* SPDX-License-Identifier: GPL-2.0 */
/*
 * isolation - shares that hold inside the drive as well
 *
 * The problem.  A scheduler orders the requests that wait outside the drive.
 * Those inside share it by their number.  A tenant that keeps few requests has
 * all of them inside, so its weight does not help it:
 *
 *	a reader of weight 1000 keeps one request of 4 KiB, and four jobs of
 *	weight 100 keep 128 of 64 KiB.  Alone a read takes 60 us.  Beside the
 *	jobs it waits at its plane for 1 ms: the reader is slowed 17 times.
 *
 * The idea.  Give up a bounded part of the throughput while that helps such a
 * flow.  The drive's queues are then short, for a queue's length grows as
 * load / (1 - load).  A flow is *short* if all of this holds:
 *
 *	its requests wait in the drive, not outside;
 *	it gets less than its share of the work done;
 *	it has less than its share of D in the drive, by cost;
 *	its requests take longer than they must, as far as is known.
 *
 * While a flow is short, the requests of the others are *paced*: they enter the
 * drive evenly in time.  Their rate is (1 - loss) * capacity, less the rate of
 * the short flows.  A flow to which the first three apply *passes*, even if it
 * is not short: its requests pass all others and need no slot.
 *
 *	capacity 3200 MB/s, loss 8 %, the reader does 18 MB/s: the jobs enter at
 *	2926 MB/s, one request of 64 KiB every 22 us.
 *
 * Why paced.  The planes of a drive are queues fed at random.  A limit on the
 * number inside lets the requests of the others enter in bunches, as they
 * complete.  Even entry shortens the planes' queues by a tenth at the same
 * throughput.  It also holds for writes, which a buffer acknowledges: a limit on
 * their number does not limit the work of the dies.
 *
 * Drives with the map on the host.  Their driver has a queue for each plane, and
 * puts urgent requests first there.  Requests that pass are urgent.  So the
 * reader above is slowed 1.3 times without any loss.
 *
 * The parts
 *   look	Every two mean times in the drive (LOOK_LEAST_NS at least, and
 *		until as many requests are done as are inside), tick
 *		compares the counters of the active flows (flow.h) with those of
 *		the last look.  A request adds to the counters of its own queue
 *		and to nothing that CPUs share.
 *   capacity	The work done in a time while the drive is *open*: not paced.
 *		A *probe* opens the drive for six looks, once in PROBE_LOOKS
 *		looks (2 % of the time).  Two of them fill the drive, and four
 *		measure.  So the capacity is that of the present mix of sizes
 *		and operations, in bytes.  A look that shows an eighth more than
 *		those before begins the measurement anew.  A probe has 16 full
 *		looks at most.  The drive is opened when no flow is short.  A
 *		flow that is short again within RESUME_LOOKS is paced for with
 *		the same capacity, and the next probe comes when it was due.  So
 *		a tenant that comes in bursts does not wait for six looks.  A
 *		tenant that pacing did not help does.
 *   drain	When pacing begins, the drive has the requests of an open one.
 *		It does those beyond the usual number before the next paced
 *		request enters, at its full rate.  At the pace alone they would
 *		go at `loss` of the rate.  100 requests of 64 KiB above take 2
 *		ms, and would take 26.
 *   gap	A flow may send a request now and then.  It remains short in
 *		between for as many looks as its longest absence, AWAY_MOST at
 *		most.  Otherwise the drive would be open when its request comes:
 *
 *		a database reads every 20 ms.  A look takes 5 ms, and pacing ends
 *		after two looks without it.  The jobs fill the drive for 10 ms,
 *		and the next read waits as it would without isolation.
 *   loss	Grows to the tunable `isolation` while a short flow misses its
 *		share, and shrinks while each has it.  Under `auto` it may grow
 *		to ISOLATION_AUTO, and further for short flows that do much of
 *		the work: they use what the others give up.
 *   goal	A flow that misses its latency goal (latency.h) is short as
 *		well, with or without its share.  The loss then grows while a
 *		goal is missed, and shrinks while all are met with ease.  A flow
 *		with a goal needs no loss for its share: the goal says how much
 *		the flow needs.  Probes are rarer, to keep out of the tail.
 *   limit	At most so many slots are in use while the drive is paced.  If
 *		the drive has become slower than the pace, requests collect
 *		inside up to the limit.  It grows while it, not the pace, keeps
 *		requests out, and shrinks while half of it is not used.  It
 *		begins with the requests that were inside the open drive.
 *   benefit	Each flow's mean time in the drive is known paced and open.  If
 *		pacing does not make it at least a quarter shorter, the flow is
 *		not short: the drive is not the cause.
 *
 * The bound on the loss.  The total of a paced drive is (1 - loss) of the
 * capacity at the last probe, because the pace follows from it.  A flow that
 * pretends to be short costs the others no more.  It gains no more than its
 * share: the position up to which its requests pass grows by its part of the
 * work, look by look, and is at most two parts ahead.  A flow with more requests
 * than the driver has tags would take the whole drive otherwise.
 *
 * No starvation.  At least one paced request is in the drive at any time, or may
 * enter it, whatever the capacity seemed to be.  A flow does not pass while
 * another one waits outside and lacks more of its share.
 *
 *	two queues of 32 tags are all slots.  A flow that is due 54 % sends to one
 *	of them.  Its requests pass, and it remains below its share with the 50 %
 *	of that queue.  Another flow of this queue would get none.
 *
 * A flow that waits is judged by BACKLOG_NS at least.  Budgets make flows wait by
 * turns, and that is no lack.
 *
 * Stability.  The pace is a constant between two looks.  Requests inside grow
 * only if the drive does less than the pace; the limit stops them, and asks for
 * a probe once it has grown to D.  The loss moves by an eighth of its range at a
 * look, so it takes longer than the drive's queues to change.
 *
 * A faster drive.  At its old pace it has fewer requests inside.  If two looks
 * in a row have less than half of the usual number, or one less than a quarter, a
 * probe follows at once.
 * The usual number is taken SETTLE_LOOKS after each probe, and is that of before
 * until then.  For requests of another size it is at first an eighth of those in
 * the open drive, times (1 - loss).  An alarm that was false halves it.
 *
 * Limits.  A drive that becomes faster, but so little that the requests inside
 * do not halve, is used at its old rate until the next probe.  A drive-managed
 * drive does not tell which plane a request needs.
 *
 * Sources: the throughput of a queue against its delay: Kleinrock, Power and
 * deterministic rules of thumb, ICC 1979.  Maximum rate and minimum delay,
 * found by turns, and paced: Cardwell et al., BBR, ACM Queue 2016.
 *
 * Locking: tick alone decides.  It walks over the active flows (flow.h), and holds
 * sched.active_lock while it sets D.  next_ns and the held slots (slots.h) are
 * atomic.
 *
 * The files: isolation_flow.c looks at the flows, and isolation.c decides.
 * isolation_look.h is between them.
 *
 * Tested by tests/unit/isolation*.c, tests/sim/isolation.c.
 */
#ifndef MQFAIR_ISOLATION_H
#define MQFAIR_ISOLATION_H

#include "port.h"

#include "depth.h"

struct report;
struct sched;
struct slots;
struct wake;

enum {
	ISOLATION_SLOTS		= 4,	/* most struct slots of a scheduler */
	ISOLATION_AUTO		= 6,	/* percent */
	AUTO_PER_WORK		= 3,	/* percent, if short flows did all work */
	ISOLATION_MOST		= 90,	/* percent */

	LOOK_LEAST_NS		= 2 * 1000 * 1000,
	LOOK_MOST_NS		= 1000 * 1000 * 1000,
	PROBE_LOOKS		= 256,	/* from one probe to the next */
	PROBE_GOAL_LOOKS	= 2048,	/* the same, beside a flow with a goal */
	PACE_SHIFT		= 16,
	SHARE_WHOLE		= 1 << 10,	/* unit of isolation_flow.lacks */
};

/* Sums over requests, or their growth since the last look. */
struct isolation_counts {
	u64 dispatched, done;
	u64 cost;		/* of requests done */
	u64 bytes;		/* of requests dispatched */
	u64 wait_ns;		/* from insert to dispatch */
	u64 service_ns;		/* from dispatch to completion */
};

/* Of a flow: all but pass_until is for tick alone. */
struct isolation_flow {
	u64 pass_until;		/* O: requests up to this position pass; 0: none */
	struct isolation_counts seen;	/* at the last look */
	struct isolation_counts last;	/* between the last two looks */
	u64 inside;		/* requests in the drive at the last look */
	s64 missed;		/* of its share, since D was changed */
	u64 share;		/* of the device, at the last look */
	u64 got, due;		/* work in a look: recent mean */
	u64 open_ns;		/* mean time in an open drive; 0: not known */
	u64 paced_ns;		/* the same in a paced one */
	u64 least_ns;		/* least mean time so far; 0: not known */
	u64 recent_ns;		/* mean time in the drive in the last look */
	u64 mean_cost;		/* of its requests, when least_ns was set */
	u64 wait_got, wait_due, wait_ns;	/* since `lacks` was judged */
	u32 wait_looks;
	u32 lacks;		/* of its share, in SHARE_WHOLE, for want of turns */
	u64 short_ns;		/* time for which it was short */
	u32 look;		/* number of the last look that counted it */
	u32 present;		/* looks with requests, from 1 on after an absence */
	u32 away;		/* looks in a row without a request */
	u32 gap;		/* looks in which it is expected back; 0: it stays */
	bool waits;		/* requests wait outside, at the last look */
	bool passes;		/* it is below its share, and its requests pass */
	bool is_short;
};

enum isolation_state {
	ISOLATION_OPEN,
	ISOLATION_PACED,
	ISOLATION_PROBE,	/* open for a moment, to measure the capacity */
};

struct isolation {
	/* read by the I/O path */
	bool paces;			/* O */
	u32 pace;			/* O: ns for 2^PACE_SHIFT bytes */
	bool measures;			/* O: the drive is open to be measured */
	u64 timer_ns;			/* O: least time to the next timer */
	u64 mean_bytes;			/* O: of the paced requests */
	atomic64_t next_ns __port_cacheline;	/* A: the next may go */

	struct slots *slots[ISOLATION_SLOTS] __port_cacheline;	/* I */
	u32 nr_slots;			/* I */
	/* tick */
	enum isolation_state state;
	u32 nr_looks;			/* looks begun so far */
	u64 look_ns;			/* time of the last look, or 0 */
	u64 at_ns;			/* of the next one */
	u64 open_ns;			/* mean time in the drive while open */
	u64 capacity;			/* bytes in 2^20 ns; 0: not known */
	u64 rate;			/* cost in 2^20 ns, in the last look */
	u32 lacking;			/* most that a flow outside lacked then */
	u64 capacity_bytes;		/* mean_bytes when the drive was paced */
	u64 paced_inside;		/* mean requests inside: now */
	u64 last_inside;		/* in the last look */
	u64 usual_inside;		/* at a drive that keeps its speed */
	u32 settle;			/* looks until usual_inside is taken */
	bool seems_faster;		/* the reason of the last probe */
	u64 kept, paced_kept;		/* requests of all flows: now; when paced */
	s64 correction;			/* of the pace, a rate */
	u32 resume;			/* open looks in which pacing may resume */
	u32 loss;			/* in thousandths of the capacity */
	u32 limit;			/* slots; 0: none set yet */
	u64 open_bytes, open_time;	/* sums over looks at the open drive */
	struct depth depth;
	u64 no_slot;			/* times so far that a queue found none */
	u64 most_inside;		/* recent most of the mean requests inside */
	u32 open_looks;			/* full ones, since measuring began */
	u32 measured;			/* of these: in the mean of the capacity */
	bool lone;			/* one flow was active at the last look */
	bool was_off;			/* the tunable was 0 since the last look */
	u32 looks, probe_at;		/* since the last probe; at the next */
	u32 quiet;			/* looks without a short flow */
	u32 trial;			/* paced looks in all */
	u64 probes;
	u64 paced_ns;			/* time for which the drive was paced */
};

void isolation_init(struct isolation *i);

/* Of init: the drive is paced by @sl, among others. */
void isolation_attach(struct sched *s, struct slots *sl);

/*
 * Of tune, after sched_params_take(): sets D of all attached slots.  Tick may
 * find another D at the same time.  Both hold active_lock, and tick looks there
 * whether D is still to be found.  So the D that a user has set stays.
 */
void isolation_set_depth(struct sched *s, u32 depth, struct wake *wake);

/* Of tick.  Asks for the next look in @wake while a flow is active. */
void isolation_tick(struct sched *s, u64 now, struct wake *wake);

/* Slow path of queue_completed(): lets paced requests go that are due. */
void isolation_release(struct sched *s, u32 queue, u64 now, struct wake *wake);

void isolation_report(const struct sched *s, struct report *r);
void isolation_report_flow(const struct isolation_flow *f, struct report *r);

/* Returns the throughput given up now, in thousandths.  A snapshot. */
static inline u32 isolation_loss(const struct isolation *i)
{
	return READ_ONCE(i->paces) ? READ_ONCE(i->loss) : 0;
}

/*
 * Is the capacity being measured?  Then a scheduler keeps no request from the
 * drive for the sake of shares.  A snapshot.
 */
static inline bool isolation_measures(const struct isolation *i)
{
	return READ_ONCE(i->measures);
}

/*
 * Of tick, with active_lock.  Does isolation hold the share of flow @f, by pacing
 * the others?  Then a scheduler keeps no request from the drive for that share.
 * It would give up more of the throughput than `isolation` allows.
 */
static inline bool isolation_holds(const struct isolation *i,
				   const struct isolation_flow *f)
{
	return i->paces && f->is_short;
}

/* A paced request of @bytes goes: the next one may go later. */
static inline void isolation_spend(struct isolation *i, u32 bytes)
{
	atomic64_add((s64)(((u64)bytes * READ_ONCE(i->pace)) >> PACE_SHIFT),
		     &i->next_ns);
}

#endif /* MQFAIR_ISOLATION_H */
