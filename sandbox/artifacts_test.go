package sandbox

import (
	"errors"
	"strings"
	"testing"

	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/id"
)

// captured returns references that fit every output of j.
func captured(j Job) []evidence.Ref {
	var refs []evidence.Ref
	for _, out := range j.Outputs {
		refs = append(refs, evidence.Ref{
			ID:        out.ID,
			Digest:    evidence.Digest([]byte("x")),
			Size:      1,
			MediaType: out.MediaType,
			Producer:  ArtifactProducer,
			Source:    j.OutputSource(out),
		})
	}
	return refs
}

func TestValidateArtifacts(t *testing.T) {
	other := seal(t, draft())
	for _, c := range []struct {
		name     string
		edit     func(Job, []evidence.Ref) []evidence.Ref
		complete bool // refused or not when the set has to be complete
		subset   bool // and when it does not
	}{
		{"all", func(_ Job, r []evidence.Ref) []evidence.Ref { return r }, true, true},
		{"other order", func(_ Job, r []evidence.Ref) []evidence.Ref { return []evidence.Ref{r[1], r[0]} }, true, true},
		{"empty files", func(_ Job, r []evidence.Ref) []evidence.Ref { r[0].Size, r[1].Size = 0, 0; return r }, true, true},
		{"largest single file", func(_ Job, r []evidence.Ref) []evidence.Ref { r[0].Size, r[1].Size = 4096, 0; return r }, true, true},
		{"one missing", func(_ Job, r []evidence.Ref) []evidence.Ref { return r[:1] }, false, true},
		{"none", func(Job, []evidence.Ref) []evidence.Ref { return nil }, false, true},
		{"one twice", func(_ Job, r []evidence.Ref) []evidence.Ref { return append(r, r[0]) }, false, false},
		{"one twice for another", func(_ Job, r []evidence.Ref) []evidence.Ref { r[1] = r[0]; return r }, false, false},
		{"undeclared", func(_ Job, r []evidence.Ref) []evidence.Ref { r[0].ID = id.New("art"); return r }, false, false},
		{"an input", func(j Job, r []evidence.Ref) []evidence.Ref { r[0] = j.Inputs[0].Ref; return r }, false, false},
		{"another job's", func(Job, []evidence.Ref) []evidence.Ref { return captured(other) }, false, false},
		{"another job's source", func(_ Job, r []evidence.Ref) []evidence.Ref {
			r[0].Source = other.OutputSource(other.Outputs[0])
			return r
		}, false, false},
		{"sources exchanged", func(_ Job, r []evidence.Ref) []evidence.Ref {
			r[0].Source, r[1].Source = r[1].Source, r[0].Source
			return r
		}, false, false},
		{"other producer", func(_ Job, r []evidence.Ref) []evidence.Ref { r[0].Producer = "guest"; return r }, false, false},
		{"other media type", func(_ Job, r []evidence.Ref) []evidence.Ref { r[0].MediaType = "text/html"; return r }, false, false},
		{"above its bound", func(_ Job, r []evidence.Ref) []evidence.Ref { r[1].Size = 2; return r }, false, false},
		{"together above the limit", func(_ Job, r []evidence.Ref) []evidence.Ref { r[0].Size = 4096; return r }, false, false},
		{"negative size", func(_ Job, r []evidence.Ref) []evidence.Ref { r[0].Size = -1; return r }, false, false},
		{"no digest", func(_ Job, r []evidence.Ref) []evidence.Ref { r[0].Digest = ""; return r }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := seal(t, draft())
			refs := c.edit(j, captured(j))
			if err := j.ValidateArtifacts(refs, true); (err == nil) != c.complete {
				t.Errorf("complete: %v, want ok %v", err, c.complete)
			}
			if err := j.ValidateArtifacts(refs, false); (err == nil) != c.subset {
				t.Errorf("subset: %v, want ok %v", err, c.subset)
			}
		})
	}
}

func TestValidateArtifactsOfMutatedJob(t *testing.T) {
	j := seal(t, draft())
	refs := captured(j)
	j.Outputs[0].MaxBytes--
	if err := j.ValidateArtifacts(refs, true); !errors.Is(err, ErrMutated) {
		t.Errorf("ValidateArtifacts() = %v", err)
	}
}

func TestValidateArtifactsOfJobWithoutOutputs(t *testing.T) {
	draft := draft()
	draft.Outputs = nil
	j := seal(t, draft)
	if err := j.ValidateArtifacts(nil, true); err != nil {
		t.Error(err)
	}
	if err := j.ValidateArtifacts([]evidence.Ref{reference("x")}, false); err == nil {
		t.Error("an artifact is accepted for a job that declares none")
	}
}

func TestOutputSource(t *testing.T) {
	j := seal(t, draft())
	got := j.OutputSource(j.Outputs[0])
	if want := string(j.ID) + "@" + j.Digest + ":/scratch/verdict.json"; got != want {
		t.Errorf("OutputSource() = %q, want %q", got, want)
	}
	// The longest path still makes a valid reference.
	d := draft()
	d.Outputs[0].Path = strings.Repeat("a/", 511) + "bb"
	j = seal(t, d)
	if err := j.ValidateArtifacts(captured(j), true); err != nil {
		t.Error(err)
	}
}
