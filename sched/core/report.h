/* SPDX-License-Identifier: GPL-2.0 */
/*
 * report - names and numbers by which a scheduler shows its state
 *
 * The host decides where they go: the kernel prints them in debugfs and
 * io.stat, a test in its output.  The numbers are snapshots: other hooks run
 * while they are taken.
 */
#ifndef MQFAIR_REPORT_H
#define MQFAIR_REPORT_H

#include "port.h"

struct report {
	/* @part tells several numbers of one name apart, or is NULL. */
	void (*put)(struct report *r, const char *name, const char *part,
		    s64 value);
};

static inline void report_number(struct report *r, const char *name, s64 value)
{
	r->put(r, name, NULL, value);
}

static inline void report_part(struct report *r, const char *name,
			       const char *part, s64 value)
{
	r->put(r, name, part, value);
}

#endif /* MQFAIR_REPORT_H */
