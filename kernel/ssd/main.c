// SPDX-License-Identifier: GPL-2.0
/* main - the module starts its parts in order and ends them in reverse */
#include "ssd.h"

static int __init ssd_init(void)
{
	int ret;

	report_init();
	ret = owners_watch();
	if (ret)
		goto report;
	ret = config_register();
	if (ret)
		goto watch;
	return 0;
watch:
	owners_unwatch();
report:
	report_exit();
	return ret;
}

static void __exit ssd_exit(void)
{
	config_unregister();
	owners_unwatch();
	report_exit();
}

module_init(ssd_init);
module_exit(ssd_exit);
MODULE_LICENSE("GPL");
MODULE_VERSION("0.3.0");
MODULE_DESCRIPTION("Virtual SSDs: block devices on a model of flash drives");
