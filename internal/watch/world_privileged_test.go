//go:build privileged

package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

// floodSocket makes the test binary a client that connects until it is killed.
const floodSocket = "TENWALLS_TEST_FLOOD"

func TestMain(m *testing.M) {
	if sock := os.Getenv(floodSocket); sock != "" {
		fmt.Println("flooding")
		for {
			if c, err := net.Dial("unix", sock); err == nil {
				_, _ = c.Write([]byte("GET /status HTTP/1.1\r\n")) // and never the rest
				_ = c.Close()
			}
		}
	}
	os.Exit(m.Run())
}

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("not root: a privileged test proves nothing without it")
	}
}

// Somebody without the right to ask connects as fast as they can, on a socket
// that lets them: who may ask is answered all the same, and nothing grows.
func TestTheSocketIsFlooded(t *testing.T) {
	asRoot(t)
	dir, err := os.MkdirTemp("/tmp", "tw-") // where nobody may go
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o755))
	sock := filepath.Join(dir, "sock")
	l, err := listenUnix(sock, -1)
	must(t, err)
	must(t, os.Chmod(sock, 0o666)) // the mode alone would keep them out
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	reached := make(chan string, 1000)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reached <- r.URL.Path; fmt.Fprint(w, "{}") })
	go func() { ended <- serve(ctx, server(h, slog.New(slog.DiscardHandler)), newGate(l, -1)) }()
	t.Cleanup(func() { cancel(); must(t, <-ended) })

	self, err := os.Open("/proc/self/exe")
	must(t, err)
	defer self.Close()
	cmd := exec.Command("/proc/self/fd/3")
	cmd.Dir, cmd.ExtraFiles, cmd.Env = "/", []*os.File{self}, []string{floodSocket + "=" + sock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { must(t, cmd.Process.Kill()); _ = cmd.Wait() })
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	before := take(t)
	slowest := time.Duration(0)
	for range 100 {
		began := time.Now()
		if _, err := (Client{sock}).Status(t.Context()); err != nil {
			t.Fatalf("who may ask is not answered: %v", err)
		}
		slowest = max(slowest, time.Since(began))
	}
	after := take(t)
	t.Logf("the slowest of 100 answers took %s; before %+v, after %+v", slowest, before, after)
	if after.goroutines > before.goroutines+5 || after.files > before.files+10 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if len(reached) != 100 {
		t.Errorf("%d requests were handled, want the 100 of who may ask", len(reached))
	}
}

// small is a file system of 64 KiB.
func small(t *testing.T) string {
	t.Helper()
	asRoot(t)
	dir := t.TempDir()
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { must(t, unix.Unmount(dir, 0)) })
	return dir
}

// fill takes what is left of it, and returns how to give it back.
func fill(t *testing.T, dir string) func() {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	must(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	must(t, f.Close())
	return func() { must(t, os.Remove(f.Name())) }
}

// A full disk: nothing half written stands there, withdrawing works, and it is
// published again when there is room.
func TestTheDiskIsFull(t *testing.T) {
	dir := small(t)
	r := newRig(t, func(r *rig) {
		r.cfg.Publish, r.cfg.PublishLife, r.takes = filepath.Join(dir, "attestation.json"), seconds(3), 0
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { r.ended <- r.d.Run(ctx); close(r.ended) }()
	t.Cleanup(func() { cancel(); must(t, <-r.ended) })
	waitFor(t, "published", func() bool { return r.d.Status().Until != nil })
	room := fill(t, dir)
	waitFor(t, "withdrawn", func() bool { return strings.Contains(r.d.Status().Why, "no space left") })
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 { // the filler
		t.Errorf("left %v, %v", left, err)
	}
	room()
	waitFor(t, "published again", func() bool { return r.d.Status().Until != nil })
	if r.count() != 1 {
		t.Errorf("%d runs: the qualification stood all the time", r.count())
	}
}

// No room for the run itself: unproven, whatever it says.
func TestNoRoomForARun(t *testing.T) {
	dir := small(t)
	w := newWorkbench(t, `cp $prepared/* "$out"; exit 0`)
	w.prepare(hostile.Qualified)
	w.child.Runs = dir
	room := fill(t, dir)
	if res := w.child.Run(t.Context(), w.request()); res.Outcome != hostile.Unproven || res.Trouble == "" || res.qualifies(boxed) == "" {
		t.Errorf("%+v", res)
	}
	room()
	if res := w.child.Run(t.Context(), w.request()); res.Outcome != hostile.Qualified {
		t.Errorf("with room: %+v", res)
	}
}

// The child is in a cgroup with the configured share, and the cgroup goes with
// it.
func TestShare(t *testing.T) {
	asRoot(t)
	// It enters right after its start, so it waits for that.
	w := newWorkbench(t, `for i in $(seq 500); do grep -q tenwalls-watch- /proc/$$/cgroup && break; sleep 0.01; done
group=$(awk -F: '$3 ~ /tenwalls-watch-/ { print $3 }' /proc/$$/cgroup)
for d in /sys/fs/cgroup/cpu /sys/fs/cgroup; do cat $d$group/cpu.cfs_quota_us $d$group/cpu.max; done >"$out/quota" 2>/dev/null
exit 2`)
	q := w.request()
	q.Share = Share{CPUPercent: 50}
	res := w.child.Run(t.Context(), q)
	if data, err := os.ReadFile(filepath.Join(res.Folder, "quota")); err != nil || !strings.HasPrefix(string(data), "50000") {
		t.Errorf("quota %q, %v", data, err)
	}
	for _, tree := range []string{cgroupRoot, cgroupRoot + "/cpu"} {
		if _, err := os.Stat(filepath.Join(tree, boundGroup(w.child.Runs))); err == nil {
			t.Errorf("it is left in %s", tree)
		}
	}
}

// Lowered is a process of its own, which cannot be raised again without a
// privilege that this one may lack.
func TestEveryThreadIsNice(t *testing.T) {
	if os.Getenv("TENWALLS_TEST_NICE") != "" {
		for range 8 {
			go func() { select {} }()
		}
		was, err := Share{Nice: 7}.lower()
		if must(t, err); was != 0 {
			t.Errorf("it was %d", was)
		}
		child := &Child{Nice: 2, Log: quiet}
		runtime.LockOSThread()
		cmd := exec.Command("sleep", "300")
		must(t, child.start(cmd))
		if n, err := unix.Getpriority(unix.PRIO_PROCESS, cmd.Process.Pid); err != nil || 20-n != 2 {
			t.Errorf("the child has %d, %v", 20-n, err)
		}
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // killed
		runtime.UnlockOSThread()
		tasks, err := os.ReadDir("/proc/self/task")
		must(t, err)
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			must(t, err)
			if n, err := unix.Getpriority(unix.PRIO_PROCESS, tid); err != nil || 20-n != 7 { // the system call's own form
				t.Errorf("thread %d has %d, %v", tid, 20-n, err)
			}
		}
		if len(tasks) < 2 {
			t.Error("one thread proves nothing")
		}
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestEveryThreadIsNice$", "-test.v")
	cmd.Env = append(os.Environ(), "TENWALLS_TEST_NICE=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v: %s", err, out)
	}
}

// With another file mounted over it a path leads elsewhere, and nothing happens in
// its folder.
func TestAMountIsSeen(t *testing.T) {
	asRoot(t)
	f, err := OpenFiles()
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	dir := t.TempDir()
	write(t, dir+"/runsc", "one")
	write(t, dir+"/other", "two")
	watchNow(t, f, Watched{Paths: []string{dir + "/runsc"}})
	drain(f)
	must(t, unix.Mount(dir+"/other", dir+"/runsc", "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(dir+"/runsc", unix.MNT_DETACH) }) // when the test ends before it does so itself
	if !seen(t, f) {
		t.Error("the mount is not seen")
	}
	drain(f)
	must(t, unix.Unmount(dir+"/runsc", 0))
	if !seen(t, f) {
		t.Error("its end is not seen")
	}
}
