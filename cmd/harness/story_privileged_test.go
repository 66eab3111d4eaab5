//go:build privileged

package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/watch"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/admission"
)

// oldRunsc is Debian's build of 2022, in which some walls are others.
func oldRunsc(t *testing.T) string {
	t.Helper()
	p := os.Getenv("TENWALLS_RUNSC_2022")
	if p == "" {
		t.Fatal("TENWALLS_RUNSC_2022 names no runsc: apt-get download runsc=0.0~20221219*, dpkg -x it, and name its usr/bin/runsc (.ci/run does)")
	}
	if _, err := os.Stat(p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestWatchStory: qualified; runsc replaced by a build of 2022, which is told by
// the published file, the run, the metrics, an alert of Prometheus and the hook;
// put back, and qualified again; and the history of it.
func TestWatchStory(t *testing.T) {
	old := oldRunsc(t)
	s := newStation(t)
	p := startPrometheus(t, s.metrics)
	began := time.Now()
	s.start()
	first := s.qualified(nil)
	t.Logf("qualified %.1f s after the start", time.Since(began).Seconds())
	s.open()
	if no := s.ask(); no != "" {
		t.Errorf("a job is refused: %s", no)
	}
	s.tells(`tenwalls_published 1`, `tenwalls_run_outcome{outcome="qualified"} 1`, `tenwalls_watched_info{`)
	p.until("no wall fell", 30*time.Second, func() bool { return p.up() && !p.firing("TenwallsWallFell") })

	replaced := s.replace(old)
	gone := s.until("withdrawn", 5*time.Second, func() bool { return !s.published() }).Sub(replaced)
	t.Logf("withdrawn %s after the rename", gone)
	if gone > time.Second {
		t.Errorf("withdrawn %s after the rename, want less than 1 s", gone)
	}
	if no := s.ask(); no != admission.Withdrawn {
		t.Errorf("asked after it: %q", no)
	}
	second := s.ran(first)
	t.Logf("refused %.1f s after the rename; walls named:\n%s", time.Since(replaced).Seconds(), strings.Join(second.Walls, "\n"))
	if second.Outcome != hostile.Refused || s.published() {
		t.Errorf("%+v", second)
	}
	if !strings.Contains(second.Reason, "runsc binary: "+first.Identity.Runtime+" before") {
		t.Errorf("because: %s", second.Reason)
	}
	s.namesTheWalls(first, second)
	s.tells(`tenwalls_published 0`, `tenwalls_run_outcome{outcome="refused"} 1`, `tenwalls_attempt_verdict{attempt="metadata",verdict="misnamed"} 1`,
		`tenwalls_withdrawals_total 1`, `tenwalls_runs_total{outcome="refused",reason="change"} 1`)
	if len(second.Drift) == 0 || !strings.Contains(second.Drift[0], "; last good run "+first.Run) {
		t.Errorf("drift %q", second.Drift)
	}
	fired := p.until("the alert", 30*time.Second, func() bool { return p.firing("TenwallsWallFell") && p.firing("TenwallsRefused") })
	t.Logf("Prometheus fires %.1f s after the rename, %.1f s after the run", fired.Sub(replaced).Seconds(), fired.Sub(second.Ended).Seconds())

	back := s.replace(pinnedRunsc(t))
	third := s.qualified(second)
	t.Logf("qualified again %.1f s after it was put back", time.Since(back).Seconds())
	if no := s.ask(); no != "" {
		t.Errorf("a job is refused: %s", no)
	}
	// Which descriptors are open at a look depends on how busy the machine is.
	third.Drift = slices.DeleteFunc(third.Drift, func(words string) bool { return strings.HasPrefix(words, "descriptors of ") })
	if len(third.Drift) > 0 || third.NotCompared != "" {
		t.Errorf("put back, and yet drifted from the first: %q %s", third.Drift, third.NotCompared)
	}
	p.until("the end of the alert", 30*time.Second, func() bool { return !p.firing("TenwallsWallFell") })
	s.hookTold()
	if state := s.kill(syscall.SIGTERM); state.ExitCode() != 0 || s.published() {
		t.Errorf("told to end: %s, published %t", state, s.published())
	}
	s.historyHolds(first, second, third)
	s.driftsByHand(third)
}

// driftsByHand changes a limit, which brings no wall down, and wants it named.
func (s *station) driftsByHand(good *watch.Ran) {
	s.t.Helper()
	text, err := os.ReadFile(s.in("runner.yaml"))
	check(s.t, err)
	s.write("wider.yaml", string(text)+"  memory: 300MiB\n")
	out, err := s.harness("run", "--config", s.in("wider.yaml"), "--attempt", "census").CombinedOutput()
	if err != nil {
		s.t.Logf("the run: %v", err) // what it came to is another's business
	}
	want := "drift: memory limit of the job's cgroup: 268435456 before, 314572800 now; last good run " + good.Run
	if n := strings.Count(string(out), "drift: "); !strings.Contains(string(out), want) || n != 1 {
		s.t.Errorf("%d times drift, want once, %q, in:\n%s", n, want, out)
	}
}

// namesTheWalls wants that what the run names is what differs between the two
// builds, by the verdicts of their reports.
func (s *station) namesTheWalls(good, bad *watch.Ran) {
	s.t.Helper()
	was, err := reports.ReadFile(filepath.Join(good.Folder, reports.ReportFile))
	check(s.t, err)
	is, err := reports.ReadFile(filepath.Join(bad.Folder, reports.ReportFile))
	check(s.t, err)
	held := map[string]bool{}
	for _, trial := range was.Trials {
		held[trial.ID] = trial.Verdict == hostile.Held
	}
	named := map[string]bool{}
	for _, w := range bad.Walls {
		id, _, _ := strings.Cut(w, ":")
		named[id] = true
	}
	for _, trial := range is.Trials {
		if trial.Verdict != hostile.Fell && trial.Verdict != hostile.Misnamed {
			continue
		}
		if id := trial.ID + " " + string(trial.Verdict); !held[trial.ID] || !named[id] {
			s.t.Errorf("%s: held before: %t, named: %t", id, held[trial.ID], named[id])
		}
	}
	if !named["step-09/metadata/aws misnamed"] {
		s.t.Error("the metadata address is not named")
	}
}

// tells waits until the daemon's metrics say all of it, and has them checked.
func (s *station) tells(want ...string) {
	s.t.Helper()
	var text string
	s.until(strings.Join(want, ", "), 10*time.Second, func() bool {
		resp, err := http.Get("http://" + s.metrics + "/metrics")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		text = string(data)
		return err == nil && !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(text, w) })
	})
	cmd := exec.Command("promtool", "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		s.t.Errorf("promtool (Debian's package prometheus): %v: %s", err, out)
	}
}

// hookTold wants qualified, refused with what changed, and qualified again.
func (s *station) hookTold() {
	s.t.Helper()
	var n []watch.Notice
	s.until("the notices", 10*time.Second, func() bool {
		n = s.notices()
		return len(n) >= 3 && n[len(n)-1].Outcome == hostile.Qualified
	})
	n = n[slices.IndexFunc(n, func(n watch.Notice) bool { return n.Outcome == hostile.Qualified }):]
	if len(n) < 3 || n[1].Outcome != hostile.Refused || len(n[1].Changes) != 1 || n[1].Changes[0].What != "runsc binary" || len(n[1].Walls) == 0 || n[len(n)-1].Before == hostile.Qualified {
		s.t.Errorf("notices %+v", n)
	}
}

// historyHolds wants the three runs in the history, with the reasons that the
// daemon had, and that what changed between two of them can be told.
func (s *station) historyHolds(first, second, third *watch.Ran) {
	s.t.Helper()
	out, err := s.harness("history", "--config", s.in("runner.yaml")).CombinedOutput()
	check(s.t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	s.t.Logf("harness history:\n%s", out)
	for _, want := range [][2]string{{"qualified", first.Run}, {"refused", second.Run}, {"qualified", third.Run}} {
		i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, want[0]) && strings.Contains(l, want[1]) })
		if i < 0 {
			s.t.Errorf("no %s run %s in the history", want[0], want[1])
		}
		lines = lines[i+1:]
	}
	if !strings.Contains(string(out), "change: identity changed: runsc binary") {
		s.t.Error("the history does not hold why")
	}
	out, err = s.harness("diff", first.Folder, second.Folder).CombinedOutput()
	if code := exitCodeOf(err); code != 1 {
		s.t.Errorf("harness diff: %v", err)
	}
	short := func(digest string) string { return digest[:len("sha256:")+12] }
	if want := "runtime digest: " + short(first.Identity.Runtime) + " before, " + short(second.Identity.Runtime) + " now"; !strings.Contains(string(out), want) {
		s.t.Errorf("no %q in:\n%s", want, out)
	}
	cmd := s.harness("diff", "last-good", third.Folder, "--config", s.in("runner.yaml"))
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Errorf("the last good run is not the last: %v: %s", err, out)
	}
}

func exitCodeOf(err error) int {
	if e, ok := err.(*exec.ExitError); ok {
		return e.ExitCode()
	}
	return 0
}
