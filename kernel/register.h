/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MQFAIR_REGISTER_H
#define MQFAIR_REGISTER_H

#include "device.h"

int elevator_register(void);
void elevator_unregister(void);

#endif /* MQFAIR_REGISTER_H */
