package reports

import (
	"fmt"
	"strings"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
)

// nasty is what a hostile guest puts into a note: it clears the screen, sets
// the title, colours, turns the direction of writing, ends a CDATA section, and
// holds a wide letter, a combining mark, NUL, DEL, C1 CSI and bytes that are no UTF-8.
const nasty = "\x1b[2J\x1b]0;owned\a\x1b[31m\r\nok \u202eheld\u2069 ]]><failure/>&\"' 壁 e\u0301 \x00\x7f\u009b31m\xff\xfe \ufffe\U000e0001"

var exampleStart = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func exampleDigest(c string) string { return "sha256:" + strings.Repeat(c, 64) }

// exampleReport is a representative report: all ten attempts and a contract
// check, every verdict, and the bytes of a hostile guest.
func exampleReport() *Report {
	r := &Report{
		Schema: Schema, Run: "run_01jnf4zd0yfq3t9ck5t8q7w2ab", Started: exampleStart, DurationMS: 11384,
		Outcome: hostile.Refused, Complete: true,
		Harness: Harness{Version: "0.1.0", Digest: exampleDigest("1")},
		Host:    Host{Name: "worker-7", Kernel: "6.18.2", BootID: "5d1f2b7e-0c1c-4a6e-9a51-0d8f2f7c9e11", Arch: "amd64", CgroupVersion: 2},
		Runtime: Runtime{
			Path: "/usr/local/bin/runsc", Version: "release-20260520.0", Digest: exampleDigest("2"),
			Platform: "systrap", Flags: []string{"--network=none", "--oci-seccomp"},
		},
		Image:        Image{Base: "empty", Fixture: exampleDigest("3"), Digest: exampleDigest("4")},
		Profile:      "runsc-deny-all-v1",
		ConfigDigest: exampleDigest("5"),
		Limits:       map[string]int64{"cpu_millis": 2000, "memory_bytes": 256 << 20, "processes": 32},
		InForce:      map[string]string{"network": "none", "seccomp": "2"},
		CannotShow: []string{"The runtime's kernel is the one wall that all the others stand on. A flaw in it brings all of them down at once, " +
			"and no check from inside or beside it proves its absence."},
	}
	add := func(step int, attempt, route string, expected hostile.Refusal, change func(*Trial)) {
		t := heldTrial(step, attempt, route, expected)
		t.Started = exampleStart.Add(time.Duration(len(r.Trials)) * time.Second)
		if change != nil {
			change(&t)
		}
		r.Trials = append(r.Trials, t)
	}
	none := func(*Trial) {}
	ownership := hostile.Refusal{Kind: hostile.EACCES, Place: hostile.FileOwnership}
	add(1, "credentials", "shadow", ownership, none)
	add(1, "credentials", "symlink", ownership, misnamed)
	add(2, "connection", "tcp4", hostile.Refusal{Kind: hostile.EPERM, Place: hostile.EntryPointFilter}, packets(0))
	add(2, "connection", "udp", hostile.Refusal{Kind: hostile.EPERM, Place: hostile.EntryPointFilter}, packets(3))
	add(3, "disk", "large-file", hostile.Refusal{Kind: hostile.ENOSPC, Place: hostile.ScratchQuota}, nil)
	add(3, "disk", "tmp", hostile.Refusal{Kind: hostile.EROFS, Place: hostile.ReadOnlyMount}, nil)
	add(4, "processes", "parent", hostile.Refusal{Kind: hostile.EAGAIN, Place: hostile.ProcessCap}, silent)
	add(5, "processor", "spinner", hostile.Refusal{Kind: hostile.CPUCap, Place: hostile.ProcessorCap}, byRunner)
	add(5, "processor", "relay", hostile.Refusal{Kind: hostile.CPUCap, Place: hostile.ProcessorCap}, byRunner)
	add(6, "memory", "anonymous", hostile.Refusal{Kind: hostile.MemoryCap, Place: hostile.JobMemoryCgroup}, blind)
	add(7, "outside", "create", hostile.Refusal{Kind: hostile.EROFS, Place: hostile.ReadOnlyMount}, hostileGuest)
	add(8, "neighbour", "walk", hostile.Refusal{Kind: hostile.Absent, Place: hostile.MountTable}, nil)
	add(9, "metadata", "aws", hostile.Refusal{Kind: hostile.ENETUNREACH, Place: hostile.RouteTable}, func(t *Trial) {
		t.Lifts = []hostile.Lift{hostile.LiftSockets}
	})
	add(10, "leftover", "daemon", hostile.Refusal{Kind: hostile.Ended, Place: hostile.ProcessGroup}, func(t *Trial) {
		t.By, t.Claim, t.Claims = ByHost, nil, nil
	})
	add(0, "census", "all", hostile.Refusal{Kind: hostile.InForce, Place: hostile.EntryPointFilter}, broken)
	return r
}

// heldTrial is a trial that held, with one want, one observation and its control.
func heldTrial(step int, attempt, route string, expected hostile.Refusal) Trial {
	id := fmt.Sprintf("step-%02d/%s/%s", step, attempt, route)
	if step == 0 {
		id = "contract/" + attempt + "/" + route
	}
	claims := []hostile.Claim{
		{Nonce: "n0", Attempt: attempt, Route: route, Event: hostile.Reached, Call: "the act"},
		{Nonce: "n0", Attempt: attempt, Route: route, Event: hostile.Stopped, Kind: expected.Kind, Place: expected.Place, Note: "as the kernel said"},
	}
	return Trial{
		ID: id, Step: step, Attempt: attempt, Route: route, Job: "main", Expected: expected, By: ByClaim,
		Source: "attempts.md, step " + fmt.Sprint(step),
		Wants: []Want{{
			Observer: "residue", Value: "processes", Moment: After, Rule: Exactly, Bound: 0, Unit: "processes",
			Breach: hostile.Fell, Words: "no process of the job is left",
		}},
		Claim: &claims[1], Claims: claims,
		Observations: []observers.Observation{{
			Observer: "residue", Place: "main", Samples: 41,
			Values: map[string]observers.Reading{"processes": {Before: 0, Worst: 7, After: 0, Unit: "processes"}},
		}},
		Controls: []observers.Control{{
			Observer: "residue", Place: "main", Effect: "one marked process in a throwaway group", Want: "1 process", Seen: "1 process", Passed: true,
		}},
		Verdict: hostile.Held, Reason: expected.String() + ", and the host agrees", DurationMS: 412,
	}
}

func misnamed(t *Trial) {
	t.Claim = &hostile.Claim{Nonce: "n0", Attempt: t.Attempt, Route: t.Route, Event: hostile.Stopped, Kind: hostile.ENOENT, Place: hostile.Unknown}
	t.Verdict = hostile.Misnamed
	t.Reason = "file ownership: expected EACCES at the file ownership, seen ENOENT at the unknown"
}

func packets(n int64) func(*Trial) {
	return func(t *Trial) {
		t.Wants = []Want{{
			Observer: "counter", Value: "packets", Moment: Growth, Rule: Exactly, Bound: 0, Unit: "packets",
			Breach: hostile.Fell, Words: "no packet to the address at the host's counter",
		}}
		t.Observations = []observers.Observation{{
			Observer: "counter", Place: "main", Samples: 2,
			Values: map[string]observers.Reading{"packets": {Before: 1, Worst: 1 + n, After: 1 + n, Unit: "packets"}},
		}}
		if n > 0 {
			t.Observations[0].Found = []string{"datagram to 192.0.2.1: " + nasty}
			t.Verdict = hostile.Fell
			t.Reason = fmt.Sprintf("entry-point filter: expected no packet to the address, seen %d", n)
		}
	}
}

func byRunner(t *Trial) {
	t.By = ByRunner
	t.Claim, t.Claims = &t.Claims[0], t.Claims[:1]
	t.Ended = &Ended{Reason: "cpu", ExitCode: 137, Refusal: t.Expected, CPUMS: 2003, WallMS: 2104}
	t.Wants = []Want{{
		Observer: "processor", Value: "cpu", Moment: Worst, Rule: AtMost, Bound: 2_200_000_000, Unit: "ns",
		Breach: hostile.Fell, Words: "at most 2.2 s of processor time over the whole job",
	}}
	t.Observations = []observers.Observation{{
		Observer: "processor", Place: "main", Samples: 2,
		Values: map[string]observers.Reading{"cpu": {Worst: 2_003_000_000, After: 2_003_000_000, Unit: "ns"}},
	}}
	t.DurationMS = 2003
}

func silent(t *Trial) {
	t.Claim, t.Claims, t.Said = nil, nil, Said{Foreign: 2, Noise: 7}
	t.Verdict, t.Reason = hostile.Silent, "process cap: expected EAGAIN at the process cap, and no claim of this run came"
}

func blind(t *Trial) {
	t.Controls[0].Passed, t.Controls[0].Seen, t.Controls[0].Reason = false, "nothing", "the kernel's log cannot be read: run as root"
	t.Verdict, t.Reason = hostile.Blind, "the observer residue failed its control"
}

func hostileGuest(t *Trial) {
	t.Claim.Event, t.Claim.Kind, t.Claim.Place = hostile.Happened, "", ""
	t.Claim.Note, t.Claim.Call, t.Claim.Count = nasty, nasty, -1<<63
	t.Verdict, t.Reason = hostile.Fell, "read-only mount: expected EROFS, and the guest says: "+nasty
}

func broken(t *Trial) {
	t.Claim, t.Claims, t.Observations, t.Controls = nil, nil, nil, nil
	t.Trouble = "start job: cannot read client sync file: EOF"
	t.Verdict, t.Reason = hostile.Broken, "the runner failed before the question was asked"
}
