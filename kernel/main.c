// SPDX-License-Identifier: GPL-2.0
/* The module: ordered start, mirrored end. */
#include "register.h"

static int __init mqfair_init(void)
{
	int ret;

	ret = compat_init();
	if (ret)
		return ret;
	ret = weights_init();
	if (ret)
		return ret;
	ret = elevator_register();
	if (ret)
		weights_exit();
	return ret;
}

static void __exit mqfair_exit(void)
{
	elevator_unregister();
	weights_exit();
}

module_init(mqfair_init);
module_exit(mqfair_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Fair sharing of fast drives between cgroups");
