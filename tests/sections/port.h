/* SPDX-License-Identifier: GPL-2.0 */
/* The simulator's port.h, with a clock at each lock: see sections.c. */
#ifndef MQFAIR_TESTS_SECTIONS_PORT_H
#define MQFAIR_TESTS_SECTIONS_PORT_H

#include "../../sim/port.h"

void section_begins(void);
void section_ends(const char *function, int line);

static inline unsigned long section_lock(struct port_lock *l)
{
	unsigned long flags = port_lock(l);

	section_begins();
	return flags;
}

static inline void section_unlock(struct port_lock *l, unsigned long flags,
				  const char *function, int line)
{
	section_ends(function, line);
	port_unlock(l, flags);
}

#define port_lock(l)	section_lock(l)
#define port_unlock(l, flags) \
	section_unlock(l, flags, __func__, __LINE__)

#endif /* MQFAIR_TESTS_SECTIONS_PORT_H */
