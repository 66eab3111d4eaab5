package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/runsc"
	"tenwalls.dev/harness/suites"
)

// capabilities compares capabilities.json with what was attested.
func (v *verification) capabilities() {
	s := v.statement
	data, there := v.read(reports.CapabilitiesFile, len(s.Capabilities) > 0)
	switch {
	case len(s.Capabilities) == 0 && there:
		v.fault("%s is there, but the attestation has no capabilities: it is of another run, or made up", filepath.Join(v.dir, reports.CapabilitiesFile))
		return
	case len(s.Capabilities) == 0:
		return
	}
	var c sandbox.Capabilities
	dec := json.NewDecoder(bytes.NewReader(s.Capabilities))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		v.fault("capabilities: %w", err)
		return
	}
	if there && !sameJSON(data, s.Capabilities) {
		v.fault("%s is not what was attested", filepath.Join(v.dir, reports.CapabilitiesFile))
	}
	if err := c.ValidateAt(time.Now()); err != nil {
		v.fault("capabilities: %w", err)
	}
	if c.RuntimeDigest != s.RuntimeDigest {
		v.fault("capabilities: runtime digest %s is not the attested %s", c.RuntimeDigest, s.RuntimeDigest)
	}
	if want := s.Run + " " + s.ReportDigest; c.Qualification != want {
		v.fault("capabilities: qualification is %q, not this run and its report, %q", c.Qualification, want)
	}
	if v.report != nil {
		v.earned(v.report, c.Limits)
	}
}

// earned checks that the report is one that qualifies: every trial that this
// harness knows was asked as it is asked here, and held.
func (v *verification) earned(r *reports.Report, grant sandbox.Limits) {
	if !qualifies(r) {
		v.fault("capabilities: the report does not qualify a runner: outcome %s, complete %t, interrupted %q", r.Outcome, r.Complete, r.Interrupted)
	}
	var missing []string
	for _, t := range suites.Trials() {
		i := slices.IndexFunc(r.Trials, func(rt reports.Trial) bool { return rt.ID == t.ID() })
		if i < 0 {
			missing = append(missing, t.ID())
			continue
		}
		if why := t.AskedOtherwise(r.Trials[i], grant); why != "" {
			v.fault("capabilities: %s was asked otherwise than this harness asks it: %s: run this harness anew", t.ID(), why)
		}
	}
	if len(missing) > 0 {
		v.fault("capabilities: the report lacks %d trials that this harness asks: %s: run this harness anew", len(missing), strings.Join(missing, ", "))
	}
}

// sameJSON compares values, not bytes: the statement holds the canonical form.
func sameJSON(a, b []byte) bool {
	var forms [2][]byte
	for i, data := range [][]byte{a, b} {
		var c sandbox.Capabilities
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if dec.Decode(&c) != nil || dec.More() {
			return false
		}
		form, err := sandbox.Canonical(c)
		if err != nil {
			return false
		}
		forms[i] = form
	}
	return bytes.Equal(forms[0], forms[1])
}

// host compares the statement with this machine. What was shown of another
// runsc, kernel or boot says nothing about this one.
func (v *verification) host(ctx context.Context, path string) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		v.fault("read this host's kernel: %w", err)
	} else if kernel := unix.ByteSliceToString(u.Release[:]); kernel != v.statement.Host.Kernel {
		v.fault("attested on kernel %s, this host runs %s: qualify this host anew (--offline does not compare)", v.statement.Host.Kernel, kernel)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		v.fault("read this host's boot id: %w", err)
	} else if id := strings.TrimSpace(string(boot)); id != v.statement.Host.BootID {
		v.fault("attested in boot %s, this is boot %s: another host, or restarted since: qualify it anew (--offline does not compare)", v.statement.Host.BootID, id)
	}
	if path == "" && v.report != nil {
		path = v.report.Runtime.Path
	}
	if path == "" {
		path, _ = findRunsc(runsc.DefaultConfig().Runtime.Path)
	}
	digest, err := runsc.FileDigest(path)
	switch {
	case ctx.Err() != nil:
		v.fault("compare with this host: %w", context.Cause(ctx))
	case err != nil:
		v.fault("read this host's runsc: %w (--runsc PATH names it)", err)
	case digest != v.statement.RuntimeDigest:
		v.fault("attested for runsc %s, but %s is %s: qualify that one anew (--offline does not compare)", v.statement.RuntimeDigest, path, digest)
	}
}

// words tell what a good attestation says, and what it does not.
func (v *verification) words(key string, offline bool) string {
	var b strings.Builder
	s := v.statement
	fmt.Fprintf(&b, "valid: run %s, outcome %s, signed by %s, expires %s\n", s.Run, s.Outcome, key, s.Expires.Format(time.RFC3339))
	switch {
	case len(s.Capabilities) > 0:
		fmt.Fprintln(&b, "qualifies the runner: every trial was asked and held")
	case s.Outcome == hostile.Qualified:
		fmt.Fprintln(&b, "does not qualify the runner: every trial that was asked held, but it was a selection")
	default:
		fmt.Fprintln(&b, "does not qualify the runner")
	}
	if v.report != nil {
		fmt.Fprintf(&b, "evidence of %d trials judged again: same verdicts\n", len(v.report.Trials))
	}
	if len(v.absent) > 0 {
		fmt.Fprintf(&b, "not compared, because not beside it: %s\n", strings.Join(v.absent, ", "))
	}
	if offline {
		fmt.Fprintln(&b, "not compared with this host (--offline)")
	} else {
		fmt.Fprintln(&b, "this host's runsc, kernel and boot are the attested ones")
	}
	return b.String()
}
