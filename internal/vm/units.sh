#!/bin/bash
# Drive the units of deploy/systemd under a real systemd, and end with 0 when all
# was as it should be. It runs in the machine of run.sh -d (make vm-units), as root;
# harness.yaml and runner.yaml are in /etc/tenwalls, the units where systemd looks.
#
# What it does not show: a whole run. An emulated machine would take half an hour.
set -u
bad=0
say() { echo; echo "=== $(cut -d. -f1 /proc/uptime)s: $*"; }
want() { # WORDS COMMAND...
	local words=$1
	shift
	if "$@"; then echo "ok: $words"; else
		echo "NOT: $words"
		bad=1
	fi
}
# There is an event for none of this that a script could wait for.
until_is() { # SECONDS COMMAND...
	local n=$(($1 * 5))
	shift
	for _ in $(seq "$n"); do
		"$@" && return 0
		sleep 0.2
	done
	return 1
}
value() { systemctl show "$1" -p "$2" --value; }
is() { [ "$(value "$1" "$2")" = "$3" ]; }
runs() { harness status --json 2>/dev/null | jq -e .running >/dev/null && [ "$(pgrep -xc runsc)" -gt 2 ]; }
no_suite() { ! pgrep -f 'harness run' >/dev/null; }
left() {
	find /sys/fs/cgroup -type d -name 'tenwalls*' | grep -v '/system.slice/tenwalls'
	awk '$5 ~ /tenwalls/ { print "mount", $5 }' /proc/self/mountinfo
	ip -o link | awk -F': ' '{ print "link", $2 }'
	ip netns
	nft list tables
	pgrep -a 'runsc|harness'
}
same() { diff <(echo "$before") <(left); }
bound() { cat /sys/fs/cgroup/tenwalls-watch-*/suite/cpu.max 2>/dev/null; }
bounded() { [ "$(bound)" = "80000 100000" ]; }

systemctl --version | head -n 1
uname -r
want "cgroup version 2 alone" test "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs
modprobe veth
modprobe nf_tables
systemctl daemon-reload
before=$(left)

say "start, and a run with its bound"
want "the service is active once it is ready" systemctl start tenwalls
want "a run goes on" until_is 200 runs
want "the suite is bounded" bounded
systemctl daemon-reload
systemd-run --quiet --unit=other -p CPUWeight=50 sleep 1
until_is 20 is other ActiveState inactive
systemctl daemon-reload
want "also after systemd has looked at the cgroups" bounded
want "the suite is not nicer than the daemon was started" test "$(ps -o ni= -p "$(pgrep -f 'harness run' | head -n 1)" | tr -d ' ')" = 0
want "its sandboxes are" until_is 20 sh -c 'ps -C runsc -o ni= | grep -q 10'
want "nothing is published before it has ended" test ! -e /run/tenwalls/attestation.json

say "reload asks for a run, and an invalid configuration is told"
want "reload" systemctl reload tenwalls
want "a further run is due" until_is 20 sh -c 'harness status --json | jq -e .due >/dev/null'
sed -i 's/^tick: .*/tick: 0s/' /etc/tenwalls/harness.yaml
want "the status names the field" until_is 60 sh -c 'harness status | grep -q "tick: 0s: must be"'
sed -i 's/^tick: .*/tick: 30s/' /etc/tenwalls/harness.yaml

say "the daemon is killed: its suite cleans up, and the next one waits for it"
was=$(value tenwalls MainPID)
systemctl kill -s KILL --kill-who=main tenwalls
another() { local now; now=$(value tenwalls MainPID); [ "$now" != 0 ] && [ "$now" != "$was" ] && is tenwalls ActiveState active; }
want "another daemon is active" until_is 150 another
want "the run before it is told as interrupted" sh -c 'harness history | grep -q interrupted'

say "all of it is killed"
want "a run goes on" until_is 200 runs
was=$(value tenwalls MainPID)
systemctl kill -s KILL tenwalls
want "another daemon is active" until_is 150 another

say "a daemon that hangs is ended by the watchdog"
want "a run goes on" until_is 200 runs
was=$(value tenwalls MainPID)
kill -STOP "$was"
want "another daemon is active" until_is 300 another

say "stop in the middle of a run"
want "a run goes on" until_is 200 runs
systemctl stop tenwalls
want "the result is success" is tenwalls Result success
want "no suite is left" until_is 60 no_suite
want "nothing is left" same

say "the oneshot ends the daemon, and can be stopped"
systemctl start tenwalls
want "a run goes on" until_is 200 runs
systemctl start --no-block tenwalls-run.service
want "the daemon ends" until_is 120 is tenwalls ActiveState inactive
want "the oneshot works" until_is 120 sh -c 'pgrep -f "harness run.*/var/lib/tenwalls/runs/" >/dev/null'
sleep 2
systemctl stop tenwalls-run.service
want "stopped, it has not failed" is tenwalls-run Result success
want "nothing is left" same

say "a configuration that is wrong from the start fails in the end"
sed -i 's/^tick: .*/tick: 0s/' /etc/tenwalls/harness.yaml
systemctl start tenwalls && bad=1
want "it is told why" sh -c 'journalctl -u tenwalls --no-pager | grep -q "tick: 0s: must be"'
want "it is given up" until_is 180 is tenwalls ActiveState failed

say "end"
[ "$bad" = 0 ] && echo "all as it should be"
exit "$bad"
