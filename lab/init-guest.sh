#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The first process of a guest on the host's root. It mounts the usual file
# systems and gets the job over the control port. Then it runs the job, reports
# its status and the kernel log, and switches the guest off. In a guest with a
# root of its own systemd has mounted all, and runs this as a service.
#
# Control port, host to guest:  "<bytes> <terminal: yes|no>\n", then the job.
#               guest to host:  "ready\n", and after the job
#                               "status <n>\n" and "dmesg <bytes>\n<log>".
lab=/run/lab
busybox=$lab/busybox
export PATH=$lab/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# Busybox is called by its full path, so that the host needs none of these tools.
mount_all() {
	$busybox mkdir -p /dev/shm /dev/pts /run/lock
	$busybox mount -t tmpfs tmpfs /dev/shm
	$busybox mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
	$busybox ln -sf /proc/self/fd /dev/fd
	$busybox ln -sf fd/0 /dev/stdin
	$busybox ln -sf fd/1 /dev/stdout
	$busybox ln -sf fd/2 /dev/stderr
	$busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
	echo "+cpu +io +memory" > /sys/fs/cgroup/cgroup.subtree_control
	$busybox mount -t debugfs debugfs /sys/kernel/debug
	$busybox mount -t tracefs tracefs /sys/kernel/tracing
	$busybox mount -t configfs configfs /sys/kernel/config
	$busybox hostname lab
	$busybox ip link set lo up
}

$busybox mkdir -p $lab/bin $lab/ports
[ $$ != 1 ] || mount_all

read -r words < /proc/cmdline
terminal_device=/dev/hvc0
case " $words " in
*" lab.uml "*)
	# User-mode Linux has serial lines in place of ports. A line must not change any byte.
	number=0
	for port in control stdout stderr terminal; do
		$busybox ln -s "/dev/ttyS$number" "$lab/ports/$port"
		[ $port = terminal ] || $busybox stty -F "/dev/ttyS$number" raw -echo
		number=$((number + 1))
	done
	terminal_device=$lab/ports/terminal
	;;
esac

# The ports of QEMU appear one after the other.
until [ -e $lab/ports/control ] && [ -e $lab/ports/stdout ] && [ -e $lab/ports/stderr ]; do
	for port in /sys/class/virtio-ports/*; do
		name=
		read -r name < "$port/name"
		[ -n "$name" ] && $busybox ln -sf "/dev/${port##*/}" "$lab/ports/$name"
	done 2>/dev/null
done

exec 3<> $lab/ports/control
echo ready >&3
read -r bytes terminal <&3
$busybox head -c "$bytes" <&3 > $lab/job

if [ "$terminal" = yes ]; then
	# shellcheck disable=SC2094 # It is a terminal, which has no content to lose.
	$busybox setsid -c /bin/sh $lab/job 3>&- < $terminal_device > $terminal_device 2>&1
	status=$?
else
	# A port can be opened only once. The job writes to pipes, so that it may reopen /dev/stdout.
	$busybox mkfifo $lab/stdout $lab/stderr
	$busybox cat $lab/stdout 3>&- > $lab/ports/stdout &
	out=$!
	$busybox cat $lab/stderr 3>&- > $lab/ports/stderr &
	err=$!
	$busybox setsid /bin/sh $lab/job 3>&- < /dev/null > $lab/stdout 2> $lab/stderr
	status=$?
	# Processes that the job left behind would keep the pipes open. Kernel threads ignore the signal.
	processes=$(echo /proc/[0-9]*)
	[ $$ = 1 ] || processes=$($busybox sed 's|^|/proc/|' /sys/fs/cgroup/system.slice/lab-job.service/cgroup.procs)
	for process in $processes; do
		case ${process##*/} in
		1 | "$$" | "$out" | "$err") ;;
		*) kill -9 "${process##*/}" ;;
		esac
	done 2> /dev/null
	wait $out $err
fi

$busybox sync
$busybox dmesg > $lab/dmesg
{
	echo "status $status"
	echo "dmesg $($busybox wc -c < $lab/dmesg)"
	$busybox cat $lab/dmesg
} >&3
$busybox poweroff -f
