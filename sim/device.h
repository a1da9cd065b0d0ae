/* SPDX-License-Identifier: GPL-2.0 */
/*
 * device - a drive of fixed service time and given parallelism
 *
 * `slots` commands are served at once, each for base_ns plus ns_per_kib for
 * every KiB it carries, a write for write_times as long; those beyond wait in
 * order of arrival.
 *
 * Or it is a drive of flash/, which the caller has made, filled if it wants to,
 * and destroys after the device: then commands are served as flash/flash.h
 * says, at their page and for their owner.  Time of that drive and of the
 * timeline are one, so a drive belongs to one timeline.
 */
#ifndef MQFAIR_SIM_DEVICE_H
#define MQFAIR_SIM_DEVICE_H

#include "timeline.h"
#include "flash/flash.h"

struct device_params {
	u32 slots;
	u64 base_ns;
	u64 ns_per_kib;
	u32 write_times;		/* 0: as long as a read */
	struct flash *flash;		/* NULL: none; else the above is unused */
};

struct device_cmd {
	struct event event;
	struct device *device;
	struct device_cmd *next;	/* waiting in the device */
	u32 bytes;
	bool write;
	u32 page, owner;		/* set by the caller, for a drive of flash/ */
	struct flash_cmd flash;
};

struct device {
	struct timeline *timeline;
	struct device_params params;
	void (*done)(struct device_cmd *cmd);
	struct device_cmd *head, **tail;
	u32 busy;			/* slots in use */
	struct event flash_due;
};

void device_init(struct device *d, struct timeline *e,
		 const struct device_params *params,
		 void (*done)(struct device_cmd *cmd));

/* Calls done(@cmd) when it has been served. */
void device_start(struct device *d, struct device_cmd *cmd, bool write,
		  u32 bytes);

/* Of a drive of fixed service time. */
u64 device_service_ns(const struct device_params *p, bool write, u32 bytes);

#endif /* MQFAIR_SIM_DEVICE_H */
