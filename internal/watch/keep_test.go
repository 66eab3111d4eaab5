package watch

import (
	"crypto/ed25519"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/attest"
	"tenwalls.dev/harness/sandbox"
)

// What is published expires with whichever is nearer, the file's life or the
// run, and the capabilities with it.
func TestPublishedExpires(t *testing.T) {
	pub, key, err := ed25519.GenerateKey(nil)
	must(t, err)
	p := &Publisher{Path: filepath.Join(t.TempDir(), "a", "b", "attestation.json"), Key: key}
	now := time.Now()
	run := attest.Statement{
		Run: "run_1", Outcome: hostile.Qualified, Issued: now.Add(-time.Hour), Expires: now.Add(time.Hour), Host: attest.StatementHost{BootID: "b", Kernel: "k"},
		RuntimeDigest: dig("r"), ConfigDigest: dig("c"), ReportDigest: dig("p"), JUnitDigest: dig("j"),
	}
	run.Capabilities, err = json.Marshal(sandbox.Capabilities{
		SchemaVersion: 1, Runtime: sandbox.RuntimeRunsc, RuntimeDigest: dig("r"), Profile: sandbox.ProfileDenyAll, Qualification: "q", QualifiedUntil: run.Expires, Limits: sandbox.DenyAllLimits(),
	})
	must(t, err)
	for _, c := range []struct{ until, want time.Time }{{now.Add(time.Minute), now.Add(time.Minute)}, {now.Add(2 * time.Hour), run.Expires}} {
		want := c.want.UTC().Truncate(time.Second)
		until, err := p.Publish(run, now, c.until)
		must(t, err)
		data, err := os.ReadFile(p.Path)
		must(t, err)
		a, err := attest.DecodeAttestation(data)
		must(t, err)
		s, err := attest.Verify(a, []ed25519.PublicKey{pub}, now)
		must(t, err)
		var caps sandbox.Capabilities
		must(t, json.Unmarshal(s.Capabilities, &caps))
		if !until.Equal(want) || !s.Expires.Equal(want) || !caps.QualifiedUntil.Equal(want) || s.ReportDigest != dig("p") || s.Issued.Sub(now).Abs() > time.Second {
			t.Errorf("until %s: %+v, %+v", c.until, s, caps)
		}
		if string(p.Published()) != string(data) {
			t.Error("it tells another than it published")
		}
		if st, err := os.Stat(p.Path); err != nil || st.Mode().Perm()&0o044 != 0o044 {
			t.Errorf("consumers cannot read it: %v, %v", st.Mode(), err)
		}
	}
	must(t, p.Withdraw())
	must(t, p.Withdraw())
	if left, err := os.ReadDir(filepath.Dir(p.Path)); err != nil || len(left) > 0 || p.Published() != nil {
		t.Errorf("left %v, %v", left, err)
	}
}

// A link under the temporary name, put there by somebody else, is not written
// through.
func TestReplaceFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/victim", "whole")
	must(t, os.Symlink(dir+"/victim", dir+"/.f.new"))
	must(t, replace(dir+"/f", []byte("x"), 0o600))
	if data, err := os.ReadFile(dir + "/victim"); err != nil || string(data) != "whole" {
		t.Errorf("%s, %v", data, err)
	}
	if st, err := os.Lstat(dir + "/f"); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

// The worst comes first, and there is an end to it.
func TestWallsAreNamedWorstFirst(t *testing.T) {
	r := &reports.Report{}
	for _, v := range []hostile.Verdict{hostile.Blind, hostile.Held, hostile.Misnamed, hostile.Fell} {
		r.Trials = append(r.Trials, reports.Trial{ID: string(v), Verdict: v, Reason: "r"})
	}
	if got := strings.Join(wallsOf(r), ", "); got != "fell fell: r, misnamed misnamed: r, blind blind: r" {
		t.Error(got)
	}
	for range 100 {
		r.Trials = append(r.Trials, reports.Trial{ID: "x", Verdict: hostile.Broken})
	}
	got := wallsOf(r)
	if len(got) != maxWalls+1 || got[0] != "fell fell: r" {
		t.Errorf("%d: %v", len(got), got)
	}
	if why := (Result{Outcome: hostile.Refused, Walls: got, Report: r}).qualifies(boxed); why != "refused: fell fell: r (and 102 others)" {
		t.Error(why)
	}
	text := (&Status{Last: &Ran{Walls: got}}).Text()
	if n := strings.Count(text, "broken"); n != shownWalls-3 || !strings.Contains(text, "and others: see the report") {
		t.Errorf("%d of them in\n%s", n, text)
	}
	if text := (&Status{Last: &Ran{Walls: got[:shownWalls]}}).Text(); strings.Contains(text, "others") {
		t.Errorf("there are no others:\n%s", text)
	}
}

func TestMemoryOutlivesTheDaemon(t *testing.T) {
	dir := t.TempDir()
	m, err := recall(dir)
	if err != nil || m.Outcome != "" {
		t.Errorf("%+v, %v", m, err)
	}
	want := memory{Outcome: hostile.Refused, LastGood: &Ran{ID: "watch_1", Identity: boxed}}
	must(t, want.keep(dir))
	if m, err = recall(dir); err != nil || m.Outcome != hostile.Refused || m.LastGood.Identity != boxed {
		t.Errorf("%+v, %v", m, err)
	}
	write(t, filepath.Join(dir, memoryFile), "{")
	if _, err := recall(dir); err == nil {
		t.Error("damage goes unnoticed")
	}
}

func TestOldRunsGo(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"watch_1", "watch_2", "watch_3", "watch_4", "watch_5.tmp"} {
		must(t, os.Mkdir(filepath.Join(dir, n), 0o755))
	}
	write(t, dir+"/child.json", "{}")
	must(t, prune(dir, 2, "/elsewhere/watch_1"))
	entries, err := os.ReadDir(dir)
	must(t, err)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got := strings.Join(left, " "); got != "child.json watch_1 watch_3 watch_4 watch_5.tmp" {
		t.Errorf("left %s", got)
	}
}

func TestLoadIsPerProcessor(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/loadavg", "3.00 2.00 1.00 2/300 4\n")
	if l, err := load(dir, 4); err != nil || l != 0.75 {
		t.Errorf("%v, %v", l, err)
	}
	write(t, dir+"/loadavg", "much")
	if _, err := load(dir, 4); err == nil {
		t.Error("nonsense is taken")
	}
}

// One daemon a state folder; a folder that was replaced is noticed.
func TestTheStateFolderIsOurs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	must(t, os.Mkdir(dir, 0o755))
	file := filepath.Join(dir, "lock")
	unlock, err := lock(file, "runs with this state_dir", "state_dir")
	must(t, err)
	if _, err := lock(file, "runs with this state_dir", "state_dir"); err == nil || !strings.Contains(err.Error(), "another harness watch runs") {
		t.Errorf("started twice: %v", err)
	}
	must(t, unlock())
	alive, err := same(dir, "state_dir")
	must(t, err)
	must(t, alive())
	must(t, os.Rename(dir, dir+".old"))
	if err := alive(); err == nil || !strings.Contains(err.Error(), "removed") {
		t.Error(err)
	}
	must(t, os.Mkdir(dir, 0o755))
	if err := alive(); err == nil || !strings.Contains(err.Error(), "is another one now") {
		t.Error(err)
	}
}

// One daemon a published file, whatever else is another: the second neither
// withdraws it nor takes the socket.
func TestThePublishedFileIsOurs(t *testing.T) {
	dir := t.TempDir()
	cfg := DefaultConfig()
	cfg.StateDir, cfg.Publish, cfg.Socket.Path = filepath.Join(dir, "second"), filepath.Join(dir, "pub", "attestation.json"), filepath.Join(dir, "sock")
	must(t, os.Mkdir(filepath.Dir(cfg.Publish), 0o755))
	write(t, cfg.Publish, "the first one's")
	unlock, err := lock(publishLock(cfg.Publish), "publishes", "publish")
	must(t, err)
	err = Serve(t.Context(), Parts{Config: cfg, Log: quiet})
	if err == nil || !strings.Contains(err.Error(), "another harness watch publishes "+cfg.Publish) {
		t.Errorf("a second daemon: %v", err)
	}
	if data, err := os.ReadFile(cfg.Publish); err != nil || string(data) != "the first one's" {
		t.Errorf("the file of the first: %q, %v", data, err)
	}
	must(t, unlock())
	err = Serve(t.Context(), Parts{Config: cfg, Log: quiet})
	if err == nil || !strings.Contains(err.Error(), "is no attestation, so it is not removed") || !isFile(cfg.Publish) {
		t.Errorf("a file that is no attestation: %v", err)
	}

	l, err := listenUnix(cfg.Socket.Path, -1)
	must(t, err)
	if _, err := listenUnix(cfg.Socket.Path, -1); err == nil || !strings.Contains(err.Error(), "somebody listens") {
		t.Errorf("a socket that is in use was taken: %v", err)
	}
	l.SetUnlinkOnClose(false) // as of a daemon that was killed
	must(t, l.Close())
	l, err = listenUnix(cfg.Socket.Path, -1)
	must(t, err)
	must(t, l.Close())
}

// A bound that another manager of cgroups took away is told. The trees are recorded
// ones, where a folder is removed only when its files are.
func TestABoundThatDoesNotLast(t *testing.T) {
	for _, c := range []struct{ dir, file, value string }{{"group/suite", "cpu.max", "50000 100000"}, {"cpu/group", "cpu.cfs_quota_us", "50000"}} {
		root := t.TempDir()
		dir := filepath.Join(root, c.dir)
		must(t, os.MkdirAll(dir, 0o755))
		for _, f := range []string{"cpu.max", "cpu.cfs_period_us", "cpu.cfs_quota_us", "cgroup.procs"} {
			write(t, filepath.Join(dir, f), "")
		}
		controls := []string{root + "/cgroup.subtree_control", root + "/group/cgroup.subtree_control"}
		if c.file == "cpu.max" {
			write(t, root+"/cgroup.controllers", "cpuset cpu io")
			for _, f := range controls {
				write(t, f, "")
			}
		}
		remove, err := Share{CPUPercent: 50}.bound(root, "group", 1234)
		must(t, err)
		want := map[string]string{dir + "/cgroup.procs": "1234", filepath.Join(dir, c.file): c.value}
		if c.file == "cpu.max" { // the upper one hands it on, so that nobody can take it from the root
			want[controls[0]], want[controls[1]] = "+cpu", "+cpu"
		}
		for file, value := range want {
			if got, err := line(file); err != nil || got != value {
				t.Errorf("%s is %q, %v", file, got, err)
			}
		}
		write(t, filepath.Join(dir, c.file), "max")
		if err := remove(); err == nil || !strings.Contains(err.Error(), "the bound did not last: "+c.file+` is "max", and was "`+c.value) {
			t.Error(err)
		}
		must(t, os.RemoveAll(filepath.Join(root, "group")))
		must(t, os.RemoveAll(dir))
		must(t, os.MkdirAll(dir, 0o755))
		if err := remove(); err == nil || !strings.Contains(err.Error(), "the bound did not last") || isThere(filepath.Dir(dir)) == (c.file == "cpu.max") || isThere(dir) {
			t.Error(err)
		}
	}
}

func isThere(path string) bool { _, err := os.Stat(path); return err == nil }

// What an earlier daemon left is found by its name.
func TestABoundThatIsLeft(t *testing.T) {
	root := t.TempDir()
	group := boundGroup("/var/lib/tenwalls/watch/runs")
	must(t, os.MkdirAll(filepath.Join(root, "cpu", group), 0o755))
	must(t, os.MkdirAll(filepath.Join(root, group, suiteGroup), 0o755))
	must(t, unbind(root, group))
	must(t, unbind(root, group))
	if isThere(filepath.Join(root, group)) || isThere(filepath.Join(root, "cpu", group)) {
		t.Error("it is left")
	}
	if boundGroup("/other") == group {
		t.Error("two daemons share one")
	}
}

func TestTheKeyIsMadeOnce(t *testing.T) {
	cfg := DefaultConfig()
	cfg.StateDir = t.TempDir()
	file, first, err := signingKey(cfg)
	must(t, err)
	again, second, err := signingKey(cfg)
	if err != nil || file != again || !first.Equal(second) {
		t.Errorf("%s, %s, %v", file, again, err)
	}
	must(t, os.Chmod(file, 0o644))
	if _, _, err := signingKey(cfg); err == nil {
		t.Error("a key that others can read is taken")
	}
}
