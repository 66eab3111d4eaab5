#!/bin/sh
# Run a command in a throwaway virtual machine whose cgroups are version 2.
#
# It shows that the harness and its tests work under another kernel than the
# host's (Debian's cloud kernel), whose controllers sit in one cgroup v2 tree,
# with ext4 on a disk of its own below them and no network device at all.
#
# What it does not show: anything about time. Without KVM the processor is
# emulated (TCG), some ten to thirty times slower than the machine, so a cap on
# wall clock is met long before what the command would do on hardware. There is
# systemd, which manages the cgroups too, only with -d. Nothing is installed on
# the host: the kernel's package is only unpacked.
#
# The command's output is printed as it comes, and the exit code is its own;
# 124 when the time was over, 125 when the machine did not come as far as the
# command or did not come back. Only for amd64; needs qemu-system-x86,
# busybox-static, cpio, e2fsprogs, dpkg, and apt-get unless -k is given; with -d
# also debootstrap.
set -eu

usage() {
	cat >&2 <<'END'
usage: internal/vm/run.sh [option]... COMMAND

COMMAND is one argument, run by sh as root in /root of the machine.
  -f FILE[=PATH]  put a file or folder in the machine, at PATH or in /root;
                  bin/harness and bin/runsc are in /usr/local/bin by themselves
  -o DIR          copy the machine's /out to DIR, which must not exist
  -t SECONDS      time for all of it, the boot (10 s) included (900)
  -k DEB          linux-image-*-cloud-amd64 package, instead of fetching it
  -s SIZE         disk, in MiB (3072)
  -d              Debian with systemd as the machine's first process, which runs
                  COMMAND when it is up; else busybox does
END
	exit 2
}

say() { echo "vm: $*" >&2; }

home=$(cd "$(dirname "$0")/../.." && pwd)
kernel='' out='' debian='' seconds=900 size=3072 files=''
newline='
'
while getopts f:o:t:k:s:d option; do
	case $option in
	f) files=$files$OPTARG$newline ;;
	o) out=$OPTARG ;;
	t) seconds=$OPTARG ;;
	k) kernel=$OPTARG ;;
	s) size=$OPTARG ;;
	d) debian=yes ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || usage
[ -z "$out" ] || [ ! -e "$out" ] || { say "$out exists"; exit 2; }
PATH=$PATH:/usr/sbin:/sbin
for program in qemu-system-x86_64 busybox cpio mke2fs debugfs dpkg timeout; do
	command -v "$program" >/dev/null || { say "no $program: apt-get install qemu-system-x86 busybox-static cpio e2fsprogs"; exit 125; }
done

work=$(mktemp -d)
machine='' reader=''
# The machine and the reader of its output are this script's own children.
# shellcheck disable=SC2317 # called by the trap
finish() {
	trap - EXIT INT TERM
	for pid in $machine $reader; do
		kill "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

[ -z "$debian" ] || command -v debootstrap >/dev/null || { say "no debootstrap: apt-get install debootstrap"; exit 125; }

# The kernel and its modules, unpacked.
if [ -z "$kernel" ]; then
	package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image-[0-9]/ { print $2; exit }')
	(cd "$work" && apt-get -q download "$package" >apt.log 2>&1) || { cat "$work/apt.log" >&2; exit 125; }
	kernel=$(echo "$work"/*.deb)
fi
dpkg -x "$kernel" "$work/kernel"
release=$(ls "$work/kernel/lib/modules")

# The root file system: busybox or Debian, the modules, what is to run.
root=$work/root
if [ -n "$debian" ]; then
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Codename: $suite" | head -n 1)
	debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,kmod,procps,iproute2,nftables,jq "$suite" "$root" ${mirror:+"$mirror"} >"$work/debootstrap.log" 2>&1 ||
		{ tail -n 20 "$work/debootstrap.log" >&2; exit 125; }
fi
for folder in bin sbin usr/bin usr/sbin usr/local/bin dev proc sys run tmp root out etc var/lib lib; do
	mkdir -p "$root/$folder"
done
chmod 1777 "$root/tmp"
cp "$(command -v busybox)" "$root/bin/busybox"
mkdir -p "$root/lib/modules"
mv "$work/kernel/lib/modules/$release" "$root/lib/modules/"
if [ -n "$debian" ]; then
	chroot "$root" depmod "$release"
	echo vm >"$root/etc/hostname"
	echo '/dev/vda / ext4 defaults 0 1' >"$root/etc/fstab"
	: >"$root/etc/machine-id"
	for tty in ttyS0 ttyS1 ttyS2; do # nobody logs in there
		ln -sf /dev/null "$root/etc/systemd/system/serial-getty@$tty.service"
	done
	# Its output goes to ttyS1 and its exit code, the marker, to ttyS2.
	cat >"$root/etc/systemd/system/command.service" <<'END'
[Unit]
Description=what this machine is for
After=multi-user.target
[Service]
Type=oneshot
WorkingDirectory=/root
Environment=HOME=/root
ExecStart=/bin/sh -c 'for tty in ttyS1 ttyS2; do stty -F /dev/$$tty raw -echo; done; { sh /etc/command; echo "exit $$?" >/dev/ttyS2; } </dev/null 2>&1 | cat >/dev/ttyS1; stty -F /dev/ttyS1 -echo; systemctl --no-block poweroff'
TimeoutStartSec=infinity
END
	mkdir -p "$root/etc/systemd/system/graphical.target.wants"
	ln -s ../command.service "$root/etc/systemd/system/graphical.target.wants/"
else
	for applet in $(busybox --list); do
		[ "$applet" = busybox ] || ln -s /bin/busybox "$root/bin/$applet"
	done
	ln -s /bin/busybox "$root/sbin/modprobe" # where the kernel looks for it
	busybox depmod -b "$root" "$release"
	echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
	echo 'root:x:0:' >"$root/etc/group"
fi
for program in harness runsc; do
	[ ! -e "$home/bin/$program" ] || cp "$home/bin/$program" "$root/usr/local/bin/"
done
echo "$files" | while IFS= read -r file; do
	[ -n "$file" ] || continue
	case $file in
	*=*) at=${file#*=} file=${file%%=*} ;;
	*) at=/root/$(basename "$file") ;;
	esac
	mkdir -p "$root$(dirname "$at")"
	cp -RL "$file" "$root$at"
done
printf '%s\n' "$1" >"$root/etc/command"

# What the machine runs first. ttyS0 is the kernel's console; the command's
# output goes to ttyS1 and its exit code, the marker, to ttyS2.
[ -n "$debian" ] || cat >"$root/sbin/init" <<'END'
#!/bin/sh
export PATH=/usr/local/bin:/bin:/sbin HOME=/root
mount -t proc -o nosuid,nodev,noexec proc /proc
mount -t sysfs -o nosuid,nodev,noexec sysfs /sys
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o nosuid,nodev shm /dev/shm
mount -t tmpfs -o nosuid,nodev,mode=755 run /run
mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 /sys/fs/cgroup
ip link set lo up
hostname vm
for tty in ttyS1 ttyS2; do stty -F /dev/$tty raw -echo; done
cd /root
{ sh /etc/command; echo "exit $?" >/dev/ttyS2; } </dev/null 2>&1 | cat >/dev/ttyS1 # a pipe, no terminal
stty -F /dev/ttyS1 -echo # returns when what was written has left
mount -o remount,ro /
poweroff -f
END
[ -n "$debian" ] || chmod 755 "$root/sbin/init"

mke2fs -q -t ext4 -d "$root" "$work/disk" "${size}M" >"$work/mke2fs.log" 2>&1 || { cat "$work/mke2fs.log" >&2; exit 125; }

# The kernel finds its disk with two modules that it does not have built in.
first=$work/first
mkdir -p "$first/bin" "$first/dev" "$first/disk"
cp "$(command -v busybox)" "$first/bin/"
modules=$(awk -F '[: ]+' '
	{ at = $1; sub(/.*\//, "", at); sub(/\.ko.*/, "", at); path[at] = $1; need[at] = $0; sub(/^[^:]*:/, "", need[at]) }
	function take(name,  list, n, i, base) {
		if (name in taken) return
		taken[name] = 1
		n = split(need[name], list, " ")
		for (i = n; i > 0; i--) { base = list[i]; sub(/.*\//, "", base); sub(/\.ko.*/, "", base); take(base) }
		print path[name]
	}
	END { take("virtio_pci"); take("virtio_blk"); take("ext4") }' "$root/lib/modules/$release/modules.dep")
{
	echo '#!/bin/busybox sh'
	for module in $modules; do
		[ -n "$module" ] || continue # it is built in
		cp "$root/lib/modules/$release/$module" "$first/"
		echo "/bin/busybox insmod /${module##*/}"
	done
	cat <<'END'
/bin/busybox mount -t devtmpfs dev /dev
until [ -b /dev/vda ]; do /bin/busybox usleep 10000; done
/bin/busybox mount -t ext4 /dev/vda /disk && /bin/busybox mount --move /dev /disk/dev
exec /bin/busybox switch_root /disk /sbin/init
END
} >"$first/init"
chmod 755 "$first/init"
(cd "$first" && find . | cpio -o -H newc -R 0:0 --quiet) >"$work/initrd"
rm -rf "$root" "$first"

: >"$work/output"
timeout "$seconds" qemu-system-x86_64 \
	-accel tcg,thread=multi -cpu max,la57=off -smp 2 -m 3072 -nic none -display none -monitor none -no-reboot \
	-kernel "$work/kernel/boot/vmlinuz-$release" -initrd "$work/initrd" \
	-append 'console=ttyS0 quiet panic=-1 random.trust_cpu=on' \
	-drive "file=$work/disk,format=raw,if=virtio,cache=unsafe" \
	-serial "file:$work/console" -serial "file:$work/output" -serial "file:$work/exit" </dev/null &
machine=$!
tail -f -n +1 --pid="$machine" "$work/output" &
reader=$!
ended=0
wait "$machine" || ended=$?
machine=''
wait "$reader" || :
reader=''

code=$(sed -n 's/^exit \([0-9]*\)$/\1/p' "$work/exit")
if [ -z "$code" ]; then
	say "the console's last lines:"
	tail -n 40 "$work/console" >&2
	[ "$ended" -ne 124 ] || { say "$seconds seconds were over"; exit 124; }
	say "the machine ended before the command did (qemu: $ended)"
	exit 125
fi
if [ -n "$out" ]; then
	mkdir -p "$out"
	debugfs -R "rdump /out $work" "$work/disk" 2>/dev/null
	cp -R "$work/out/." "$out/"
fi
exit "$code"
