package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/attest"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/runsc"
	"tenwalls.dev/harness/suites"
)

const fixtureDigest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"

// attest writes the files of a made-up run into DIR, signed by $WORK/own.key:
// attest DIR KIND. With the first call it makes the keys own and other, and a
// file runsc that stands for the runtime.
func attested(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: attest DIR KIND")
	}
	for _, name := range []string{"own", "other"} {
		if _, err := os.Stat(ts.MkAbs(name + ".key")); err != nil {
			_, err := attest.GenerateKey(ts.MkAbs(name+".key"), ts.MkAbs(name+".pub"))
			ts.Check(err)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs("runsc"), []byte("runtime"), 0o755))
	r := madeUp(ts.MkAbs("runsc"))
	now := time.Now()
	switch args[1] {
	case "qualified":
	case "expired":
		now = now.Add(-48 * time.Hour)
	case "selection":
		r.Trials, r.Complete = r.Trials[:1], false
	case "short": // claims to be complete, and lacks a trial
		r.Trials = r.Trials[1:]
	case "lax": // wants less than this harness does
		r.Trials[0].Wants = r.Trials[0].Wants[1:]
	case "wide": // grants itself more than is attested
		i := slices.IndexFunc(r.Trials, func(t reports.Trial) bool { return t.ID == "contract/limits/memory" })
		r.Trials[i].Wants[0].Bound *= 2
	case "refused":
		r.Trials[0].Claims[1].Event = hostile.Happened
		r.Trials[0].Claims[1].Kind, r.Trials[0].Claims[1].Place = "", ""
		r.Trials[0] = suites.Judge(r.Trials[0])
		r.Outcome = suites.Outcome(r.Trials)
	case "broken":
		r.Trials[0].Trouble = "the runner did not start"
		r.Trials[0] = suites.Judge(r.Trials[0])
		r.Outcome = suites.Outcome(r.Trials)
	case "misjudged": // signed, but its evidence says otherwise
		r.Trials[0].Controls, r.Trials[0].Claims = nil, nil
	case "otherboot":
		r.Host.BootID = "00000000-0000-4000-8000-000000000000"
	case "otherkernel":
		r.Host.Kernel = "0.0.1"
	case "otherruntime":
		r.Runtime.Digest = fixtureDigest
	default:
		ts.Fatalf("no kind %s", args[1])
	}
	key, err := attest.LoadPrivateKey(ts.MkAbs("own.key"))
	ts.Check(err)
	files, err := documents(r, sandbox.DenyAllLimits(), 24*time.Hour, key, now)
	ts.Check(err)
	ts.Check(reports.WriteFiles(ts.MkAbs(args[0]), files))
}

// madeUp is a complete run of every trial on this host, in which each held.
func madeUp(runtime string) *reports.Report {
	var u unix.Utsname
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err == nil {
		err = unix.Uname(&u)
	}
	if err != nil {
		panic(err)
	}
	r := &reports.Report{
		Schema: reports.Schema, Run: "run_01jnf4zd0yfq3t9ck5t8q7w2ab", Started: time.Now().UTC(), DurationMS: 11000, Complete: true,
		Harness: reports.Harness{Version: "test", Digest: fixtureDigest},
		Host: reports.Host{
			Name: "worker-7", Kernel: unix.ByteSliceToString(u.Release[:]), BootID: strings.TrimSpace(string(boot)), Arch: "amd64", CgroupVersion: 2,
		},
		Runtime: reports.Runtime{Path: runtime, Version: "test", Digest: evidence.Digest([]byte("runtime")), Platform: "systrap", Flags: []string{}},
		Image:   reports.Image{Base: "empty", Fixture: fixtureDigest, Digest: fixtureDigest},
		Profile: sandbox.ProfileDenyAll, ConfigDigest: fixtureDigest, Limits: map[string]int64{"processes": 32},
		InForce: map[string]string{}, CannotShow: suites.CannotShow,
	}
	for _, t := range suites.Trials() {
		r.Trials = append(r.Trials, suites.Judge(standing(t.Under(runsc.DefaultConfig()))))
	}
	r.Outcome = suites.Outcome(r.Trials)
	return r
}

// standing is the evidence of a trial whose wall stood.
func standing(t suites.Trial) reports.Trial {
	claim := hostile.Claim{Nonce: "n", Attempt: t.Attempt.Name, Route: t.Route, Event: hostile.Reached, Call: "act"}
	out := reports.Trial{
		ID: t.ID(), Step: t.Attempt.Step, Attempt: t.Attempt.Name, Route: t.Route, Job: "place", Lifts: append([]hostile.Lift{}, t.Lifts()...),
		Expected: t.Expected, By: t.By, Source: t.Source, Wants: slices.Clone(t.Wants), Claims: []hostile.Claim{claim},
		Ended: &reports.Ended{Reason: "exited", Refusal: t.Expected}, Started: time.Now().UTC(), DurationMS: 5,
	}
	// A route that is an end of a job came to that end.
	if end, ok := map[string]string{
		"runner-killed": "lost", "cancelled": "cancelled", "cpu-capped": "cpu", "wall-capped": "wall",
		"memory-capped": "memory", "output-capped": "output",
	}[t.Route]; ok {
		out.Ended.Reason = end
	}
	if t.By == reports.ByClaim {
		claim.Event, claim.Kind, claim.Place = hostile.Stopped, t.Expected.Kind, t.Expected.Place
		out.Claims = append(out.Claims, claim)
	}
	seen := map[string]map[string]observers.Reading{}
	for _, w := range out.Wants {
		if seen[w.Observer] == nil {
			seen[w.Observer] = map[string]observers.Reading{}
		}
		r := seen[w.Observer][w.Value]
		r.Unit = w.Unit
		switch w.Moment {
		case reports.After:
			r.After = w.Bound
		case reports.Growth:
			r.Before = r.After - w.Bound
		default:
			r.Worst = w.Bound
		}
		seen[w.Observer][w.Value] = r
	}
	for name, values := range seen {
		out.Observations = append(out.Observations, observers.Observation{Observer: name, Place: "place", Values: maps.Clone(values), Samples: 1})
		out.Controls = append(out.Controls, observers.Control{Observer: name, Place: "place", Effect: "an effect", Want: "it", Seen: "it", Passed: true})
	}
	return out
}
