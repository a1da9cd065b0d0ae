/* SPDX-License-Identifier: GPL-2.0 */
/*
 * classify - finds the flow of a request and describes the request as an io
 *
 * elevator.c calls classify() at the first insertion and declassify() when the
 * request finishes.  A request that a driver sent back keeps its flow.
 *
 * No lock is needed: between the two calls a request_host belongs to its
 * request alone.
 */
#ifndef MQFAIR_CLASSIFY_H
#define MQFAIR_CLASSIFY_H

#include "device.h"

/*
 * Task context, with the request's bios still attached.  Sets r->blkg, which is NULL
 * if the request is charged to the root.  The caller takes a reference on it before
 * the request can complete: until then the bio has one.
 */
void classify(struct request *rq, struct request_host *r);

/* Any context. */
static inline void declassify(struct request_host *r)
{
	if (r->blkg)
		blkg_put(r->blkg);
	r->blkg = NULL;
	r->rq = NULL;
}

#endif /* MQFAIR_CLASSIFY_H */
