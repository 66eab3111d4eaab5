package reports

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/syscalls"
	"tenwalls.dev/harness/observers"
)

// goodReport is a complete run in which everything held, with values that were
// read back and a census.
func goodReport() *Report {
	r := exampleReport()
	r.Outcome, r.Host.Arch = hostile.Qualified, runtime.GOARCH
	r.InForce = map[string]string{
		"cgroup: memory limit":   "268435456",
		"cgroup: task limit":     "512",
		"sandbox process: Uid":   "0 0 0 0",
		"sandbox process: flags": "--network=none --oci-seccomp=true boot --total-memory 1024 --attached",
	}
	for i := range r.Trials {
		was := r.Trials[i]
		r.Trials[i] = heldTrial(was.Step, was.Attempt, was.Route, was.Expected)
	}
	census := trialOf(r, "contract/census/all")
	census.Claim.Note = "allowed 0-1,3; refused 400; by EPERM 400, SIGSYS 0; undecided 7"
	census.Observations = []observers.Observation{{Observer: "census", Samples: 1, Values: map[string]observers.Reading{
		"through": {After: 3}, "refused": {After: 400}, "undecided": {After: 1}, "beyond": {}, "missing": {},
	}}}
	return r
}

func trialOf(r *Report, id string) *Trial {
	for i := range r.Trials {
		if r.Trials[i].ID == id {
			return &r.Trials[i]
		}
	}
	panic("no trial " + id)
}

// badReport is goodReport with something of every section changed, and a
// hostile guest that had its say.
func badReport() *Report {
	r := goodReport()
	r.Run, r.Started, r.DurationMS = "run_01jnf4zd0yfq3t9ck5t8q7w2zz", r.Started.AddDate(0, 0, 1), 30_000
	r.Outcome = hostile.Refused
	t := trialOf(r, "step-01/credentials/shadow")
	t.Verdict, t.Reason = hostile.Fell, "the guest says: "+nasty
	t = trialOf(r, "step-05/processor/relay")
	t.Expected, t.Lifts = hostile.Refusal{Kind: hostile.WallCap, Place: hostile.WallClock}, []hostile.Lift{hostile.LiftProcessorCap}
	t.DurationMS = 9_900
	r.Trials = append(r.Trials[:7], r.Trials[8:]...) // without step-05/processor/spinner
	r.Trials = append(r.Trials, heldTrial(0, "identity", "nobody", hostile.Refusal{Kind: hostile.InForce, Place: hostile.ProcessCredentials}))
	r.Runtime.Digest, r.Runtime.Version = exampleDigest("e"), "\x1b[2Jodd"
	r.Host.Kernel, r.ConfigDigest, r.Image.Base, r.Harness.Digest = "6.18.3", exampleDigest("d"), exampleDigest("c"), exampleDigest("b")
	r.Image.Fixture, r.Image.Digest = exampleDigest("8"), exampleDigest("9") // another run's secrets: no difference
	r.Limits = map[string]int64{"cpu_millis": 2000, "memory_bytes": 128 << 20}
	r.InForce = map[string]string{
		"cgroup: memory limit":   noLimit,
		"cgroup: swap limit":     "0",
		"sandbox process: Uid":   "0 0 0 0",
		"sandbox process: flags": "--oci-seccomp=false --network=none boot --attached --total-memory 2048",
	}
	census := trialOf(r, "contract/census/all")
	census.Claim.Note = "allowed 0-1,3,309; refused 399; by EPERM 398, SIGSYS 1; undecided 7"
	census.Observations[0].Values = map[string]observers.Reading{
		"through": {After: 4}, "refused": {After: 399}, "undecided": {After: 1}, "beyond": {After: 1}, "missing": {},
	}
	return r
}

func TestDiffGolden(t *testing.T) {
	a, b := goodReport(), badReport()
	a.Host.Arch, b.Host.Arch = "other", "other" // numbers without names, whatever this is built for
	d := Diff(a, b)
	golden(t, "diff.txt", []byte(d.Text()))
	data, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "diff.json", append(data, '\n'))
	if d.Same {
		t.Error("they are told to be the same")
	}
}

// The sections come in their order, in the list of changes too.
func TestDiffOrder(t *testing.T) {
	last, seen := 0, map[Section]bool{}
	for _, c := range Diff(goodReport(), badReport()).Changes {
		for i, s := range sections {
			if s == c.Section {
				if i < last {
					t.Errorf("%s stands behind %s", s, sections[last])
				}
				last = i
			}
		}
		seen[c.Section] = true
		if c.Subject == "" || c.Before == c.After || Harmless(c.Words+c.Before+c.After) != c.Words+c.Before+c.After {
			t.Errorf("%+v", c)
		}
	}
	if len(seen) != len(sections) {
		t.Errorf("only %v", seen)
	}
}

func TestDiffOfTheSame(t *testing.T) {
	for name, change := range map[string]func(*Report){
		"nothing": func(*Report) {},
		"secrets": func(r *Report) { r.Image.Fixture, r.Image.Digest = exampleDigest("8"), exampleDigest("9") },
		"flag order": func(r *Report) {
			r.InForce["sandbox process: flags"] = "--oci-seccomp=true --network=none boot --attached --total-memory 1024"
		},
		"half more": func(r *Report) { r.DurationMS = r.DurationMS * 3 / 2 },
		"a little":  func(r *Report) { r.DurationMS += 1900; trialOf(r, "step-05/processor/relay").DurationMS += 1900 },
		"its time":  func(r *Report) { r.Run, r.Started = "run_2", r.Started.AddDate(0, 1, 0) },
		"readings": func(r *Report) {
			trialOf(r, "step-03/disk/tmp").Observations[0].Values["processes"] = observers.Reading{Worst: 9}
		},
	} {
		b := goodReport()
		change(b)
		if d := Diff(goodReport(), b); !d.Same || len(d.Changes) != 0 || !strings.Contains(d.Text(), "no difference") {
			t.Errorf("%s: %+v", name, d.Changes)
		}
	}
}

// only is the words of the one change between the good report and its change.
func only(t *testing.T, change func(*Report)) Change {
	t.Helper()
	b := goodReport()
	change(b)
	d := Diff(goodReport(), b)
	if len(d.Changes) != 1 {
		t.Fatalf("%d changes: %+v", len(d.Changes), d.Changes)
	}
	if d.Same != (d.Changes[0].Section == Timings) {
		t.Errorf("same is %t with %+v", d.Same, d.Changes[0])
	}
	return d.Changes[0]
}

func TestDiffWords(t *testing.T) {
	getcpu, ok := syscalls.Number("getcpu")
	if !ok || getcpu <= 3 {
		t.Fatal("no number for getcpu")
	}
	count := func(note string, through int64) func(*Report) {
		return func(r *Report) {
			c := trialOf(r, "contract/census/all")
			c.Claim.Note = note
			c.Observations[0].Values["through"] = observers.Reading{After: through}
		}
	}
	for want, change := range map[string]func(*Report){
		"memory limit of the job's cgroup: 268435456 before, none now":   func(r *Report) { r.InForce["cgroup: memory limit"] = noLimit },
		"task limit of the job's cgroup: 512 before, not read now":       func(r *Report) { delete(r.InForce, "cgroup: task limit") },
		"Uid of the sandbox process: 0 0 0 0 before, 1 1 1 1 now":        func(r *Report) { r.InForce["sandbox process: Uid"] = "1 1 1 1" },
		"read back from a running sandbox: 4 values before, nothing now": func(r *Report) { r.InForce = nil },
		"flags of the sandbox process: --total-memory 1024 before and not now, --total-memory 7 now and not before": func(r *Report) {
			r.InForce["sandbox process: flags"] = "--oci-seccomp=true --network=none boot --total-memory 7 --attached"
		},
		"runtime digest: sha256:222222222222 before, sha256:777777777777 now": func(r *Report) { r.Runtime.Digest = exampleDigest("7") },
		"limit processes: 32 before, none now":                                func(r *Report) { delete(r.Limits, "processes") },
		"asked: every trial before, a selection now":                          func(r *Report) { r.Complete = false },
		"the run: 11.4 s before, 22.8 s now":                                  func(r *Report) { r.DurationMS *= 2 },
		"step 5 processor: spinner, relay: 0.4 s before, 3.0 s now": func(r *Report) {
			trialOf(r, "step-05/processor/relay").DurationMS, trialOf(r, "step-05/processor/spinner").DurationMS = 3000, 3000
		},
		"contract census: all: held before, blind now: nobody saw": func(r *Report) {
			c := trialOf(r, "contract/census/all")
			c.Verdict, c.Reason = hostile.Blind, "nobody saw"
		},
		"contract census: all: asked before, not asked now": func(r *Report) { r.Trials = r.Trials[:len(r.Trials)-1] },
		fmt.Sprintf("entry points let through: 3 before, 4 now; now let through: %d getcpu", getcpu): func(r *Report) {
			count(fmt.Sprintf("allowed 0-1,3,%d; refused 400; by EPERM 400, SIGSYS 0; undecided 7", getcpu), 4)(r)
		},
		fmt.Sprintf("entry points let through: 3 both times; now let through: %d getcpu; now refused: 3 %s", getcpu, syscalls.Name(3)): func(r *Report) {
			count(fmt.Sprintf("allowed 0-1,%d; refused 400; by EPERM 400, SIGSYS 0; undecided 7", getcpu), 3)(r)
		},
		"entry points let through: 3 both times": count("allowed 0-x; refused 400; by EPERM 400, SIGSYS 0; undecided 7", 3),
		"entry points let through: 3 before, not counted now": func(r *Report) {
			delete(trialOf(r, "contract/census/all").Observations[0].Values, "through")
		},
		"entry points refused by: EPERM 400, SIGSYS 0 before, SIGSYS 400 now": count("allowed 0-1,3; refused 400; by SIGSYS 400; undecided 7", 3),
	} {
		if got := only(t, change).Words; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestDiffTellsEachPartOfTheIdentity(t *testing.T) {
	for want, change := range map[string]func(*Report){
		"runtime digest":       func(r *Report) { r.Runtime.Digest = "x" },
		"runtime version":      func(r *Report) { r.Runtime.Version = "x" },
		"runtime path":         func(r *Report) { r.Runtime.Path = "x" },
		"runtime platform":     func(r *Report) { r.Runtime.Platform = "x" },
		"runtime flags":        func(r *Report) { r.Runtime.Flags = nil },
		"kernel":               func(r *Report) { r.Host.Kernel = "x" },
		"boot":                 func(r *Report) { r.Host.BootID = "x" },
		"host":                 func(r *Report) { r.Host.Name = "x" },
		"architecture":         func(r *Report) { r.Host.Arch = "x" },
		"cgroup version":       func(r *Report) { r.Host.CgroupVersion = 1 },
		"configuration digest": func(r *Report) { r.ConfigDigest = "x" },
		"profile":              func(r *Report) { r.Profile = "x" },
		"limit cpu_millis":     func(r *Report) { r.Limits["cpu_millis"] = 1 },
		"base image digest":    func(r *Report) { r.Image.Base = "x" },
		"harness digest":       func(r *Report) { r.Harness.Digest = "x" },
		"harness version":      func(r *Report) { r.Harness.Version = "x" },
	} {
		if c := only(t, change); c.Subject != want || c.Section != Identity {
			t.Errorf("%s: %+v", want, c)
		}
	}
}

// What an observer lost is no count, and a number names a call of one
// architecture only.
func TestDiffOfCensusesThatCannotBeCompared(t *testing.T) {
	b := goodReport()
	trialOf(b, "contract/census/all").Observations[0].Lost = "the claim cannot be read"
	if drift := Diff(goodReport(), b).Drift(); len(drift) != 1 || drift[0].Words != "entry points let through: 3 before, not counted now" {
		t.Errorf("%+v", drift)
	}
	a := goodReport()
	trialOf(a, "contract/census/all").Route, trialOf(b, "contract/census/all").Route = "by-signal", "by-signal"
	if drift := Diff(a, b).Drift(); len(drift) != 1 || drift[0].Words != "entry points (by-signal) let through: 3 before, not counted now" {
		t.Errorf("%+v", drift)
	}
	b = goodReport()
	b.Host.Arch = "another"
	trialOf(b, "contract/census/all").Claim.Note = "allowed 0-2; refused 400; by EPERM 400, SIGSYS 0; undecided 7"
	if drift := Diff(goodReport(), b).Drift(); len(drift) != 1 || !strings.HasSuffix(drift[0].Words, "now let through: 2; now refused: 3") {
		t.Errorf("%+v", drift)
	}
}

// What refused a trial that was misnamed both times can be another.
func TestDiffOfTwoMisnamed(t *testing.T) {
	a, b := goodReport(), goodReport()
	for _, r := range []*Report{a, b} {
		misnamed(trialOf(r, "step-01/credentials/symlink"))
		byRunner(trialOf(r, "step-05/processor/relay"))
		trialOf(r, "step-05/processor/relay").Verdict = hostile.Misnamed
	}
	if d := Diff(a, b); !d.Same {
		t.Errorf("%+v", d.Changes)
	}
	trialOf(b, "step-01/credentials/symlink").Claim.Kind = hostile.EROFS
	trialOf(b, "step-05/processor/relay").Ended.Refusal = hostile.Refusal{Kind: hostile.WallCap, Place: hostile.WallClock}
	d := Diff(a, b)
	if len(d.Changes) != 2 || d.Changes[0].Section != Refusals ||
		d.Changes[0].Words != "step 1 credentials: symlink: misnamed both times, refused by: ENOENT at the unknown before, EROFS at the unknown now" ||
		d.Changes[1].Words != "step 5 processor: relay: misnamed both times, refused by: cpu cap at the processor cap before, wall cap at the wall clock now" {
		t.Errorf("%+v", d.Changes)
	}
}

func TestDriftIsWhatIsInForce(t *testing.T) {
	d := Diff(goodReport(), badReport())
	seen := map[Section]int{}
	for _, c := range d.Drift() {
		seen[c.Section]++
	}
	if len(seen) != 2 || seen[InForce] != 4 || seen[Census] != 4 {
		t.Errorf("%v", seen)
	}
	if drift := Diff(goodReport(), goodReport()).Drift(); len(drift) != 0 {
		t.Errorf("%+v", drift)
	}
}

// Nothing that a report can hold makes a comparison fail.
func TestDiffOfEmptyReports(t *testing.T) {
	if d := Diff(&Report{}, &Report{}); !d.Same || d.Changes == nil {
		t.Errorf("%+v", d)
	}
	if d := Diff(&Report{}, exampleReport()); d.Same {
		t.Error("the same as an empty one")
	}
	if d := Diff(exampleReport(), &Report{}); d.Same {
		t.Error("the same as an empty one")
	}
}
