/* SPDX-License-Identifier: GPL-2.0 */
/*
 * port - the names that sched/ and flash/ may use, on the kernel's primitives
 *
 * Every host provides the same list. Most of it is the kernel's vocabulary:
 *
 *   u8 … u64, s32, s64, bool, size_t
 *   READ_ONCE() WRITE_ONCE() smp_load_acquire() smp_store_release()
 *   atomic64_t, atomic64_{read,set,read_acquire,set_release,add,sub,inc,dec}
 *   atomic64_{add,sub,inc,dec}_return atomic64_fetch_{add,or,and,andnot}
 *   atomic64_{xchg,cmpxchg,try_cmpxchg}
 *   ilog2() min() max() clamp() container_of() ARRAY_SIZE() BIT_ULL()
 *   likely() unlikely() static_assert()
 *   div64_u64() mul_u64_u32_shr() mul_u64_u64_shr() mul_u64_u64_div_u64()
 *
 * The rest of the list follows.
 */
#ifndef MQFAIR_PORT_H
#define MQFAIR_PORT_H

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/container_of.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/local64.h>

#define __port_cacheline	____cacheline_aligned_in_smp

/* Index of the lowest bit set; undefined for 0. */
static inline unsigned int port_ffs64(u64 x)
{
	return __ffs64(x);
}

/* One more than the index of the highest bit set; 0 for 0. */
static inline unsigned int port_fls64(u64 x)
{
	return fls64(x);
}

/* The number of bits that are set. */
static inline unsigned int port_count64(u64 x)
{
	return hweight64(x);
}

/*
 * A counter of one CPU, which alone adds to it; any CPU reads it.  An addition is
 * one instruction without a lock, so an interrupt on that CPU may add, too.
 */
typedef local64_t port_counter;

static inline void port_count(port_counter *c, s64 n)
{
	local64_add(n, c);
}

static inline u64 port_counted(port_counter *c)
{
	return (u64)local64_read(c);
}

/* Returns the running CPU.  The caller stays on it until port_cpu_end(). */
static inline u32 port_cpu_begin(void)
{
	return (u32)get_cpu();
}

static inline void port_cpu_end(void)
{
	put_cpu();
}

#define port_assert(condition)	((void)WARN_ON_ONCE(!(condition)))

/*
 * A leaf lock that any context may take. It is a raw spin lock because a holder
 * keeps it for a few lines only.
 */
struct port_lock {
	raw_spinlock_t raw;
};

/* A macro, because lockdep makes one class for each place that uses it. */
#define port_lock_init(lock)	raw_spin_lock_init(&(lock)->raw)

static inline unsigned long port_lock(struct port_lock *lock)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock->raw, flags);
	return flags;
}

static inline void port_unlock(struct port_lock *lock, unsigned long flags)
{
	raw_spin_unlock_irqrestore(&lock->raw, flags);
}

#define port_assert_held(lock)	lockdep_assert_held(&(lock)->raw)

/*
 * Asserts that the caller holds the lock of queue @q. The lock belongs to the
 * host, so stage.c defines the function, for a kernel with lockdep. On other
 * kernels it costs nothing.
 */
struct queue;
#ifdef CONFIG_LOCKDEP
void port_assert_queue_held(const struct queue *q);
#else
static inline void port_assert_queue_held(const struct queue *q)
{
}
#endif

/*
 * Zeroed memory, aligned to a cache line; NULL when there is none. It serves
 * the set-up of a queue or a cgroup, never the I/O path. The allocator aligns
 * only powers of two to their size.
 */
static inline void *port_zalloc(size_t size)
{
	if (size < PAGE_SIZE)
		size = roundup_pow_of_two(max_t(size_t, size, SMP_CACHE_BYTES));
	return kvzalloc(size, GFP_NOIO);
}

static inline void port_free(void *memory)
{
	kvfree(memory);
}

#endif
