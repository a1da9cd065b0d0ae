/* SPDX-License-Identifier: GPL-2.0 */
/*
 * register - the elevator types of mqfair, one for each scheduler
 *
 * main.c calls these when the module starts and ends, in task context.  The
 * block layer makes and removes devices in between, through the types.
 */
#ifndef MQFAIR_REGISTER_H
#define MQFAIR_REGISTER_H

/* 0, or -errno with no type registered.  wake_workqueue_create() comes first. */
int elevator_register(void);
void elevator_unregister(void);

#endif /* MQFAIR_REGISTER_H */
