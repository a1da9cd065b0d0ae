#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The first process of a guest, in the initramfs. It mounts the host's root,
# read-only, under a writable tmpfs and switches to it. If a step fails, set -e
# makes process 1 exit, the kernel panics, and the guest ends.
set -e
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
while read -r module; do
	insmod "/modules/$module"
done < /modules.order

read -r words < /proc/cmdline
case " $words " in
*" maxcpus=1 "*)
	for online in /sys/devices/system/cpu/cpu[1-9]*/online; do
		echo 1 > "$online"
	done
	;;
esac
case " $words " in
*" lab.uml "*) mount -t hostfs -o ro,/ none /lower ;;
*) mount -t 9p -o trans=virtio,version=9p2000.L,msize=507904,cache=loose,ro lab.root /lower ;;
esac
mount -t tmpfs -o size=75% tmpfs /upper
mkdir /upper/data /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/data,workdir=/upper/work root /root

mount --move /dev /root/dev
mount --move /proc /root/proc
mount --move /sys /root/sys
mount -t tmpfs -o mode=755 tmpfs /root/run
mkdir /root/run/lab
cp /bin/busybox /init-guest.sh /root/run/lab/
case " $words " in
*" lab.machine "*)
	# The machine's own systemd runs the job, as a service.
	units=/root/run/systemd/system
	mkdir -p $units/multi-user.target.wants
	cp /lab-job.service $units/
	ln -s ../lab-job.service $units/multi-user.target.wants/
	exec switch_root /root /sbin/init
	;;
esac
exec switch_root /root /run/lab/busybox sh /run/lab/init-guest.sh
