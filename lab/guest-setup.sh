# SPDX-License-Identifier: GPL-2.0
# Functions that prepare the guest. The guest sources them before every job, and
# the job begins with the calls that the host has chosen.
busybox=/run/lab/busybox

lab_fail() {
	echo "lab: $1" >&2
	exit 125
}

# A writable share caches nothing but mapped pages, so that host and guest see the same files.
lab_share() { # TAG-OR-FOLDER PATH ro|rw
	if [ "$3" = ro ]; then mode=cache=loose,ro; else mode=cache=mmap; fi
	type=9p
	options=trans=virtio,version=9p2000.L,msize=507904,$mode
	# User-mode Linux names the folder in place of a tag.
	case $1 in
	/*)
		type=hostfs
		options=$3,$1
		;;
	esac
	if ! { $busybox mkdir -p "$2" && $busybox mount -t $type -o "$options" "$1" "$2"; }; then
		lab_fail "$2: cannot mount the host's folder: see the kernel log"
	fi
}

lab_modules() { # FOLDER
	if ! { $busybox mkdir -p /lib/modules && $busybox mount --bind "$1" /lib/modules; }; then
		lab_fail "$1: cannot mount the kernel's modules at /lib/modules: see the kernel log"
	fi
}

# Drives appear in any order, so a drive is found by its serial number. The paths of NVMe multipath
# have that of their head, and no node.
lab_drive() { # SERIAL PATTERN-OF-NAMES FILE-WITH-THE-SERIAL-NUMBER
	tries=0
	while [ $tries -lt 500 ]; do
		for disk in /sys/block/$2; do
			serial=
			read -r serial < "$disk/$3"
			[ "$serial" = "$1" ] || continue
			[ -e "/dev/${disk##*/}" ] || continue
			LAB_DRIVES="${LAB_DRIVES:+$LAB_DRIVES }/dev/${disk##*/}"
			return
		done 2>/dev/null
		tries=$((tries + 1))
		$busybox sleep 0.02
	done
	lab_fail "drive $1 did not appear within 10 s: see the kernel log"
}

lab_load() { # MODULE...
	for module in "$@"; do
		modprobe "$module" || lab_fail "module $module: cannot be loaded: see the kernel log"
	done
}
