/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MQFAIR_TICK_H
#define MQFAIR_TICK_H

#include "device.h"

void tick_work(struct work_struct *work);

#endif /* MQFAIR_TICK_H */
