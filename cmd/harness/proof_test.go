package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

// proven is a whole proof of the host, harness, runtime and configuration of r.
func proven(r *reports.Report, finished time.Time) *reports.Proof {
	held := reports.ProofTrial{ID: "step-01/credentials/shadow", Attempt: "credentials", Verdict: hostile.Held, Predicted: hostile.Held}
	fell := held
	fell.Verdict, fell.Predicted = hostile.Fell, hostile.Fell
	p := &reports.Proof{
		Schema: reports.ProofSchema, Proof: "proof_01", Started: finished.Add(-time.Minute), Finished: finished, Complete: true,
		Harness: r.Harness, Host: r.Host, Runtime: r.Runtime, ConfigDigest: r.ConfigDigest, Baseline: []reports.ProofTrial{held},
		Mutants: []reports.Mutant{{
			Name: "canary-world-readable", Title: "t", Part: reports.PartFixture, Source: "s", Killing: reports.Killed, Trials: []reports.ProofTrial{fell},
		}},
	}
	p.Outcome = p.Judged()
	return p
}

func keep(t *testing.T, dir string, p *reports.Proof) {
	t.Helper()
	data, err := reports.EncodeProof(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := keepProof(dir, p, data); err != nil {
		t.Fatal(err)
	}
}

func TestRequireProof(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	run := func() *reports.Report {
		digest := "sha256:" + strings.Repeat("ab", 32)
		return &reports.Report{
			Run: "run_01", Started: began, Outcome: hostile.Qualified, Harness: reports.Harness{Version: "v1", Digest: digest},
			Host:    reports.Host{Name: "worker", Kernel: "6.12", BootID: "b", Arch: "amd64", CgroupVersion: 2},
			Runtime: reports.Runtime{Path: "/runsc", Version: "v", Digest: digest, Platform: "systrap", Flags: []string{}}, ConfigDigest: digest,
		}
	}
	for what, c := range map[string]struct {
		keep   func(*reports.Proof) *reports.Proof // nil: none is kept
		within time.Duration
		want   hostile.Outcome
		says   string
		named  bool // whether the report names the proof
	}{
		"none, and none required": {nil, 0, hostile.Qualified, "", false},
		"none":                    {nil, time.Hour, hostile.Unproven, "no whole proof is kept", false},
		"young":                   {func(p *reports.Proof) *reports.Proof { return p }, time.Hour, hostile.Qualified, "", true},
		"too old":                 {func(p *reports.Proof) *reports.Proof { return p }, time.Minute, hostile.Unproven, "30m0s old", true},
		"old, and none required":  {func(p *reports.Proof) *reports.Proof { return p }, 0, hostile.Qualified, "", true},
		"of another harness": {func(p *reports.Proof) *reports.Proof {
			p.Harness.Digest = "sha256:" + strings.Repeat("cd", 32)
			return p
		}, time.Hour, hostile.Unproven, "another harness", false},
		"of another runtime": {func(p *reports.Proof) *reports.Proof {
			p.Runtime.Digest = "sha256:" + strings.Repeat("cd", 32)
			return p
		}, time.Hour, hostile.Unproven, "another runtime", false},
		"of another configuration": {func(p *reports.Proof) *reports.Proof { p.ConfigDigest = "sha256:" + strings.Repeat("cd", 32); return p }, time.Hour, hostile.Unproven, "another configuration", false},
		"of another kernel":        {func(p *reports.Proof) *reports.Proof { p.Host.Kernel = "6.13"; return p }, time.Hour, hostile.Unproven, "another kernel", false},
		"from the future":          {func(p *reports.Proof) *reports.Proof { p.Finished = began.Add(time.Second); return p }, time.Hour, hostile.Unproven, "from the future", false},
		"a selection":              {func(p *reports.Proof) *reports.Proof { p.Complete = false; return p }, time.Hour, hostile.Unproven, "no whole proof is kept", false},
		"whole, and not proven": {func(p *reports.Proof) *reports.Proof {
			p.Mutants[0].Killing = reports.Survived
			p.Outcome = p.Judged()
			return p
		}, time.Hour, hostile.Unproven, "is disproven", false},
		"refused, whatever is kept": {nil, time.Hour, hostile.Refused, "", false},
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "harness"), 0o711); err != nil {
			t.Fatal(err)
		}
		r := run()
		if c.keep != nil {
			keep(t, dir, c.keep(proven(r, began.Add(-30*time.Minute))))
		}
		if c.want == hostile.Refused {
			r.Outcome = hostile.Refused
		}
		requireProof(r, dir, c.within)
		if r.Outcome != c.want || !strings.Contains(r.Unproven, c.says) || (r.Proof != nil) != c.named {
			t.Errorf("%s: %s (%q), proof %+v", what, r.Outcome, r.Unproven, r.Proof)
		}
		if c.named && (r.Proof.AgeS != 1800 || r.Proof.Killed != 1 || !strings.HasPrefix(r.Proof.Digest, "sha256:")) {
			t.Errorf("%s: proof %+v", what, r.Proof)
		}
	}
}

// A later proof that failed takes the place of an earlier one that did not.
func TestKeptProofIsTheLast(t *testing.T) {
	dir, r := t.TempDir(), &reports.Report{Host: reports.Host{Arch: "amd64"}, Runtime: reports.Runtime{Flags: []string{}}, Started: time.Now()}
	if err := os.Mkdir(filepath.Join(dir, "harness"), 0o711); err != nil {
		t.Fatal(err)
	}
	keep(t, dir, proven(r, time.Now().Add(-time.Hour)))
	if ref, why := provenBy(dir, r); ref == nil {
		t.Fatal(why)
	}
	failed := proven(r, time.Now())
	failed.Mutants[0].Killing = reports.Survived
	failed.Outcome = failed.Judged()
	keep(t, dir, failed)
	if ref, why := provenBy(dir, r); ref != nil || !strings.Contains(why, "disproven") {
		t.Errorf("%+v, %q", ref, why)
	}
	if err := os.WriteFile(proofFile(dir), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ref, why := provenBy(dir, r); ref != nil || !strings.Contains(why, "proof.json") {
		t.Errorf("a damaged proof: %+v, %q", ref, why)
	}
}
