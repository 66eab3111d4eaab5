package main

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/watch"
	"tenwalls.dev/harness/reports/history"
)

// desk is the books of a daemon over a state folder of its own.
type desk struct {
	t      *testing.T
	state  string
	runner string
	*books
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, state: filepath.Join(t.TempDir(), "state")}
	d.runner = filepath.Join(t.TempDir(), "runner.yaml")
	if err := os.WriteFile(d.runner, []byte("state_dir: "+d.state+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.books = newBooks(d.runner, "v1")
	return d
}

func (d *desk) request(id string) watch.Request {
	return watch.Request{ID: id, Reason: "it is time", Cause: watch.CauseSchedule, Began: time.Now().UTC(), Runner: d.runner}
}

// noted makes a run that notes itself, by this process as the child.
func (d *desk) noted(end func(n *note)) watch.Result {
	d.t.Helper()
	n, err := begin(d.state, "schedule: it is time")
	if err != nil {
		d.t.Fatal(err)
	}
	end(n)
	return watch.Result{PID: os.Getpid(), Run: n.entry.Run, Ended: time.Now()}
}

// lines are the runs in the history: outcome and reason.
func (d *desk) lines() (out []string) {
	d.t.Helper()
	entries, damage, err := history.In(d.state).Entries(time.Time{})
	if err != nil || len(damage) > 0 {
		d.t.Fatal(err, damage)
	}
	for _, e := range entries {
		out = append(out, fmt.Sprintf("%s %s: %s", e.Outcome, e.Reason, e.Why))
	}
	return out
}

func (d *desk) scrape() string {
	w := httptest.NewRecorder()
	d.handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func (d *desk) wantLines(want ...string) {
	d.t.Helper()
	if got := d.lines(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		d.t.Errorf("the history holds\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What the child noted is not noted again.
func TestBooksNoteNothingTwice(t *testing.T) {
	d := newDesk(t)
	q := d.request("watch_1")
	if err := d.Begin(q); err != nil {
		t.Fatal(err)
	}
	res := d.noted(func(n *note) {
		r := madeUp(filepath.Join(d.state, "runsc"))
		r.Run = n.entry.Run
		n.judged(r)
		if err := n.finish(); err != nil {
			t.Fatal(err)
		}
	})
	res.Outcome = hostile.Qualified
	if err := d.Finish(q, res); err != nil {
		t.Error(err)
	}
	d.wantLines("qualified schedule: it is time: ")
	if got := d.scrape(); !strings.Contains(got, `tenwalls_runs_total{outcome="qualified",reason="schedule"} 1`) {
		t.Errorf("told:\n%s", got)
	}
	// Killed before its end: the history tells that by itself.
	if err := d.Begin(d.request("watch_2")); err != nil {
		t.Fatal(err)
	}
	res = d.noted(func(*note) {})
	res.Outcome = hostile.Unproven
	if err := d.Finish(q, res); err != nil {
		t.Error(err)
	}
	d.wantLines("qualified schedule: it is time: ", "running schedule: it is time: ") // by this very process
}

// What no child noted is noted by the daemon, and qualifies nothing.
func TestBooksNoteWhatNoChildCould(t *testing.T) {
	d := newDesk(t)
	for n, c := range []struct {
		res  watch.Result
		fail bool
	}{
		{watch.Result{Outcome: hostile.Unproven, Trouble: "start harness run: no such file", Ended: time.Now()}, false},
		{watch.Result{Outcome: hostile.Unproven, Trouble: "ended early", Stopped: true, PID: 1, Ended: time.Now()}, false},
		{watch.Result{Outcome: hostile.Qualified, Run: "run_x", PID: 1, Ended: time.Now()}, true},
	} {
		q := d.request(fmt.Sprint("watch_", n))
		if err := errors.Join(d.Begin(q), d.Finish(q, c.res)); (err != nil) != c.fail {
			t.Errorf("%+v: %v", c.res, err)
		}
	}
	d.wantLines("unproven schedule: it is time: start harness run: no such file", "interrupted schedule: it is time: ended early", "unproven schedule: it is time: ")
	if err := os.WriteFile(d.runner, []byte("state_dir: /dev/null\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Begin(d.request("watch_9")); err == nil {
		t.Error("a run begins that cannot be recorded")
	}
}

// A daemon that was started anew tells of the last run, with its drift.
func TestBooksTellOfWhatWas(t *testing.T) {
	d := newDesk(t)
	r := madeUp(filepath.Join(d.state, "runsc"))
	for _, limit := range []string{"1", "2"} {
		n, err := begin(d.state, "start")
		if err != nil {
			t.Fatal(err)
		}
		again := *r
		again.Run, again.InForce = n.entry.Run, map[string]string{"cgroup: memory limit": limit}
		n.judged(&again)
		if err := n.finish(); err != nil {
			t.Fatal(err)
		}
	}
	d.books = newBooks(d.runner, "v1")
	got := d.scrape()
	for _, want := range []string{
		`tenwalls_run_outcome{outcome="qualified"} 1`, `tenwalls_attempt_verdict{attempt="memory",verdict="held"} 1`, "tenwalls_drift_differences 1",
		"tenwalls_published 0", "tenwalls_withdrawals_total 0",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in:\n%s", want, got)
		}
	}
}

// The proof is looked at when somebody asks; one that shows nothing is none.
func TestBooksTellOfTheProof(t *testing.T) {
	d := newDesk(t)
	const metric = "tenwalls_last_proof_timestamp_seconds"
	file := proofFile(d.state)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{`{"proof": "proof_1", "finished": "2026-03-02T08:00:00Z", "outcome": "proven", "more": 1}`, metric + " 1.7724384e+09"},
		{`{"proof": "proof_2", "finished": "2026-03-02T09:00:00Z", "outcome": "disproven"}`, ""},
		{`{"proof": "proof_3", "finished": "2026-03-02T09:00:00Z", "outcome": "proven"}`, metric + " 1.772442e+09"},
		{`{"proof": `, ""},
		{`{"outcome": "proven"}`, ""},
	} {
		if c.text != "" {
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := d.scrape()
		if c.want != "" && !strings.Contains(got, c.want) || c.want == "" && strings.Contains(got, metric+" ") {
			t.Errorf("%s: want %q in:\n%s", c.text, c.want, got)
		}
	}
}

// Published, withdrawn, published again.
func TestBooksTellOfWhatIsPublished(t *testing.T) {
	d := newDesk(t)
	d.Identified(watch.Identity{Runtime: "sha256:1", Kernel: "6.18.2"})
	d.Published(time.Time{})
	d.Published(time.Unix(1772442000, 0))
	got := d.scrape()
	for _, want := range []string{"tenwalls_published 1", "tenwalls_published_expires_timestamp_seconds 1.772442e+09", "tenwalls_withdrawals_total 0", `kernel="6.18.2"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in:\n%s", want, got)
		}
	}
	d.Identified(watch.Identity{})
	d.Published(time.Time{})
	d.Published(time.Time{})
	got = d.scrape()
	if !strings.Contains(got, "tenwalls_published 0") || !strings.Contains(got, "tenwalls_withdrawals_total 1") || strings.Contains(got, "tenwalls_published_expires_timestamp_seconds ") || strings.Contains(got, "tenwalls_watched_info{") {
		t.Errorf("told:\n%s", got)
	}
}
