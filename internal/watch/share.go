package watch

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lower sets the nice value of this process. Linux keeps it by thread
// (setpriority(2), "C library/kernel differences"), and a new thread or process
// takes that of the thread which made it: so every thread is set, until no new
// one turns up. It returns what the value was.
func (s Share) lower() (was int, err error) {
	if was, err = unix.Getpriority(unix.PRIO_PROCESS, 0); err != nil {
		return 0, fmt.Errorf("share.nice: %w", err)
	}
	was = 20 - was // the system call's own form
	if s.Nice <= was {
		return was, nil
	}
	set := map[string]bool{}
	for {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return 0, fmt.Errorf("share.nice: %w", err)
		}
		fresh := false
		for _, t := range tasks {
			if set[t.Name()] {
				continue
			}
			tid, err := strconv.Atoi(t.Name())
			if err != nil {
				return 0, fmt.Errorf("share.nice: %w", err)
			}
			if err := unix.Setpriority(unix.PRIO_PROCESS, tid, s.Nice); err != nil && !errors.Is(err, unix.ESRCH) {
				return 0, fmt.Errorf("share.nice: thread %d: %w", tid, err)
			}
			set[t.Name()], fresh = true, true
		}
		if !fresh {
			return was, nil
		}
	}
}

// period is that of the processor bound: the kernel's own default.
const period = 100 * time.Millisecond

// cgroupRoot is where the cgroup file systems are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// boundGroup is the cgroup that bounds the runs in a folder. Its name is known, so
// that a daemon that follows a killed one finds what that left.
func boundGroup(runs string) string {
	sum := sha256.Sum256([]byte(runs))
	return "tenwalls-watch-" + hex.EncodeToString(sum[:6])
}

// bound puts the process into a cgroup of its own that is granted the share of
// processor time. The jobs of the suite are not in it: the runner gives each its
// own cgroup, and bounds it by the limits of the runner configuration. The
// returned function removes the cgroup, and says so when the bound did not last; it
// is never nil.
func (s Share) bound(root, group string, pid int) (func() error, error) {
	none := func() error { return nil }
	if s.CPUPercent == 0 {
		return none, nil
	}
	quota := strconv.FormatInt(period.Microseconds()*int64(s.CPUPercent)/100, 10)
	micros := strconv.FormatInt(period.Microseconds(), 10)
	dir := filepath.Join(root, "cpu", group)
	values := [][2]string{{"cpu.cfs_period_us", micros}, {"cpu.cfs_quota_us", quota}}
	if data, err := os.ReadFile(filepath.Join(root, "cgroup.controllers")); err == nil && strings.Contains(" "+string(data), " cpu") {
		dir, values = filepath.Join(root, group, suiteGroup), [][2]string{{"cpu.max", quota + " " + micros}}
	}
	last := values[len(values)-1]
	remove := func() error {
		var lost error
		if now, err := line(filepath.Join(dir, last[0])); err != nil || now != last[1] {
			lost = fmt.Errorf("share.cpu_percent: the bound did not last: %s is %q, and was %q: somebody else manages the cgroups (%w)", last[0], now, last[1], cmp.Or(err, errChanged))
		}
		return errors.Join(lost, unbind(root, group))
	}
	if err := makeGroup(root, dir); err != nil {
		return func() error { return unbind(root, group) }, err
	}
	for _, v := range append(values, [2]string{"cgroup.procs", strconv.Itoa(pid)}) {
		if err := put(filepath.Join(dir, v[0]), v[1]); err != nil {
			return remove, fmt.Errorf("share.cpu_percent: %w", err)
		}
	}
	return remove, nil
}

// suiteGroup is below the group on version 2.
const suiteGroup = "suite"

// makeGroup makes the folder of a bound. On version 2 that is a group below the
// group: while the group hands the controller on, nobody can take it from the root
// (cgroups(7)), as systemd else does at its next reload.
func makeGroup(root, dir string) error {
	steps := []func() error{func() error { return mkdir(dir) }}
	if upper := filepath.Dir(dir); filepath.Base(dir) == suiteGroup {
		steps = []func() error{
			func() error { return put(filepath.Join(root, "cgroup.subtree_control"), "+cpu") },
			func() error { return mkdir(upper) },
			func() error { return put(filepath.Join(upper, "cgroup.subtree_control"), "+cpu") },
			steps[0],
		}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("share.cpu_percent: %w", err)
		}
	}
	return nil
}

func mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o755); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// errChanged is why a bound did not last when its file can be read.
var errChanged = errors.New("it was changed")

// unbind removes the cgroup, also one that an earlier daemon left.
func unbind(root, group string) error {
	for _, dir := range []string{filepath.Join(root, group, suiteGroup), filepath.Join(root, group), filepath.Join(root, "cpu", group)} {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("share.cpu_percent: remove %s: %w", dir, err)
		}
	}
	return nil
}

// put writes to a control file that is there.
func put(name, value string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// load is the one-minute load average per processor (proc(5), /proc/loadavg).
func load(proc string, processors int) (float64, error) {
	text, err := line(filepath.Join(proc, "loadavg"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(text, " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, fmt.Errorf("%s/loadavg: %w", proc, err)
	}
	return v / float64(processors), nil
}
