package sandbox

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/sandbox/evidence"
)

var noon = time.Date(2030, 5, 17, 12, 0, 0, 0, time.UTC)

// qualified returns capabilities that support draft() until an hour after noon.
func qualified() Capabilities {
	l := DenyAllLimits()
	l.ArtifactBytes = 4096
	return Capabilities{
		SchemaVersion:  SchemaVersion,
		Runtime:        RuntimeRunsc,
		RuntimeDigest:  evidence.Digest([]byte("runsc")),
		Profile:        ProfileDenyAll,
		Qualification:  "run_1 sha256:feed",
		QualifiedUntil: noon.Add(time.Hour),
		Limits:         l,
	}
}

func TestSupportsFailsClosed(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*Capabilities)
	}{
		{"zero value", func(c *Capabilities) { *c = Capabilities{} }},
		{"schema zero", func(c *Capabilities) { c.SchemaVersion = 0 }},
		{"schema two", func(c *Capabilities) { c.SchemaVersion = 2 }},
		{"no runtime", func(c *Capabilities) { c.Runtime = "" }},
		{"other runtime", func(c *Capabilities) { c.Runtime = "runc" }},
		{"runtime in another case", func(c *Capabilities) { c.Runtime = "Runsc" }},
		{"no runtime digest", func(c *Capabilities) { c.RuntimeDigest = "" }},
		{"bad runtime digest", func(c *Capabilities) { c.RuntimeDigest = "sha256:feed" }},
		{"no profile", func(c *Capabilities) { c.Profile = "" }},
		{"other profile", func(c *Capabilities) { c.Profile = "runsc-deny-all-v2" }},
		{"no qualification", func(c *Capabilities) { c.Qualification = "" }},
		{"blank control as qualification", func(c *Capabilities) { c.Qualification = "\t" }},
		{"long qualification", func(c *Capabilities) { c.Qualification = strings.Repeat("q", 1025) }},
		{"no expiry", func(c *Capabilities) { c.QualifiedUntil = time.Time{} }},
		{"expired", func(c *Capabilities) { c.QualifiedUntil = noon.Add(-time.Nanosecond) }},
		{"expires at this instant", func(c *Capabilities) { c.QualifiedUntil = noon }},
		{"no limits", func(c *Capabilities) { c.Limits = Limits{} }},
		{"unlimited", func(c *Capabilities) { c.Limits.MemoryBytes = 1<<63 - 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			caps := qualified()
			c.edit(&caps)
			if err := caps.ValidateAt(noon); !errors.Is(err, ErrUnqualified) {
				t.Errorf("ValidateAt() = %v", err)
			}
			if err := caps.SupportsAt(seal(t, draft()), noon); !errors.Is(err, ErrUnqualified) {
				t.Errorf("SupportsAt() = %v", err)
			}
		})
	}
}

func TestSupports(t *testing.T) {
	job, caps := seal(t, draft()), qualified()
	if err := caps.SupportsAt(job, noon); err != nil {
		t.Error(err)
	}
	if err := caps.SupportsAt(job, caps.QualifiedUntil.Add(-time.Nanosecond)); err != nil {
		t.Errorf("at the last valid instant: %v", err)
	}
	zone := time.FixedZone("far", 14*3600)
	if err := caps.SupportsAt(job, caps.QualifiedUntil.In(zone)); !errors.Is(err, ErrUnqualified) {
		t.Errorf("expired, told in another zone: %v", err)
	}
}

// TestSupportsNow shows that the methods without a time use the machine's.
func TestSupportsNow(t *testing.T) {
	job, caps := seal(t, draft()), qualified()
	caps.QualifiedUntil = time.Now().Add(time.Hour)
	if err := errors.Join(caps.Validate(), caps.Supports(job)); err != nil {
		t.Error(err)
	}
	caps.QualifiedUntil = time.Now().Add(-time.Hour)
	if err := caps.Validate(); !errors.Is(err, ErrUnqualified) {
		t.Errorf("Validate() after expiry = %v", err)
	}
	if err := caps.Supports(job); !errors.Is(err, ErrUnqualified) {
		t.Errorf("Supports() after expiry = %v", err)
	}
}

func TestSupportsRefusesEveryLimitAboveTheGrant(t *testing.T) {
	for i := range reflect.TypeFor[Limits]().NumField() {
		j := draft()
		field := reflect.ValueOf(&j.Limits).Elem().Field(i)
		field.SetInt(field.Int() + 1)
		if err := qualified().SupportsAt(seal(t, j), noon); !errors.Is(err, ErrUnqualified) {
			t.Errorf("%s above the grant: %v", reflect.TypeFor[Limits]().Field(i).Name, err)
		}
	}
}

// TestSupportsRefusesBadJobs gives jobs that schema one refuses a fitting
// digest, which anyone can compute.
func TestSupportsRefusesBadJobs(t *testing.T) {
	for name, edit := range map[string]func(*Job){
		"other network":  func(j *Job) { j.Network = "host" },
		"zero limit":     func(j *Job) { j.Limits.CPUMillis = 0 },
		"negative limit": func(j *Job) { j.Limits.WallTime = -1 },
		"path leads out": func(j *Job) { j.Inputs[0].Path = "../x" },
	} {
		j := draft()
		edit(&j)
		var err error
		if j.Digest, err = j.digest(); err != nil {
			t.Fatal(err)
		}
		if err := qualified().SupportsAt(j, noon); err == nil || errors.Is(err, ErrMutated) {
			t.Errorf("%s: SupportsAt() = %v", name, err)
		}
	}
	if err := qualified().SupportsAt(draft(), noon); !errors.Is(err, ErrMutated) {
		t.Errorf("job without a seal: %v", err)
	}
}
