# Sourced before every job, in the guest: what the host asked to be there.
busybox=/run/lab/busybox

lab_fail() {
	echo "lab: $1" >&2
	exit 125
}

# A writable share sees the host's folder itself: nothing is cached but mapped pages.
lab_share() { # TAG PATH ro|rw
	if [ "$3" = ro ]; then mode=cache=loose,ro; else mode=cache=mmap; fi
	$busybox mkdir -p "$2" &&
		$busybox mount -t 9p -o "trans=virtio,version=9p2000.L,msize=507904,$mode" "$1" "$2" ||
		lab_fail "$2: cannot mount the host's folder"
}

lab_modules() { # FOLDER
	$busybox mkdir -p /lib/modules && $busybox mount --bind "$1" /lib/modules ||
		lab_fail "$1: cannot show the kernel's modules under /lib/modules"
}

# The controllers come up in any order: a drive is known by its serial number.
lab_drive() { # NUMBER
	tries=0
	while [ $tries -lt 500 ]; do
		for controller in /sys/class/nvme/*; do
			serial=
			read -r serial < "$controller/serial"
			[ "$serial" = "lab$1" ] || continue
			for disk in "$controller"/nvme*n1; do
				[ -e "/dev/${disk##*/}" ] || continue
				LAB_DRIVES="${LAB_DRIVES:+$LAB_DRIVES }/dev/${disk##*/}"
				return
			done
		done 2>/dev/null
		tries=$((tries + 1))
		$busybox sleep 0.02
	done
	lab_fail "nvme drive $1 did not appear"
}

lab_load() { # MODULE...
	for module in "$@"; do
		modprobe "$module" || lab_fail "module $module: cannot be loaded; see the kernel log"
	done
}
