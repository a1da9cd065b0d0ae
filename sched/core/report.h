/* SPDX-License-Identifier: GPL-2.0 */
/*
 * report - what a scheduler tells people about its state: names and numbers
 *
 * The host decides where they go: the kernel to debugfs and io.stat, a test to
 * its output.  Snapshots, taken without stopping anything.
 */
#ifndef MQFAIR_REPORT_H
#define MQFAIR_REPORT_H

#include "port.h"

struct report {
	/* @part: which of several of this name, or NULL. */
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
