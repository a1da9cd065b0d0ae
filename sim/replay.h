/* SPDX-License-Identifier: GPL-2.0 */
/*
 * replay - the requests of a trace file, one after another
 *
 * A file has the format "mqfair trace 1": a first line with these words, then
 * for each request a line
 *
 *	NS OPERATION OFFSET BYTES [SOURCE]
 *
 * NS is the arrival, counted from the start of the load, and never less than on
 * the line before.  OPERATION is read or write.  OFFSET and BYTES are in bytes,
 * multiples of 512.  A line that begins with # and the source are skipped.
 *
 * The file is read line by line, so memory does not grow with it.  A fault ends
 * the reading with a message that names the file, the line and the value.
 */
#ifndef MQFAIR_SIM_REPLAY_H
#define MQFAIR_SIM_REPLAY_H

#include "sched/core/cost.h"

struct replay_request {
	u64 at_ns, offset;
	u32 bytes;
	enum io_op op;
};

struct replay;

/*
 * Opens the file @path.  Its requests have at most @most_bytes and end at
 * @end, or anywhere if @end is 0.  Returns NULL if memory is short.  A file that
 * cannot be read is told by replay_wrong().
 */
struct replay *replay_open(const char *path, u32 most_bytes, u64 end);

void replay_close(struct replay *r);

/* Reads the next request.  Returns false at the end, and on a fault. */
bool replay_next(struct replay *r, struct replay_request *request);

/* Returns the message about a fault, or NULL if there was none. */
const char *replay_wrong(const struct replay *r);

#endif /* MQFAIR_SIM_REPLAY_H */
