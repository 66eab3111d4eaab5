package evidence

import (
	"strings"
	"testing"

	"tenwalls.dev/harness/sandbox/id"
)

func valid() Ref {
	return Ref{
		ID:        id.New("art"),
		Digest:    Digest([]byte("bytes")),
		Size:      5,
		MediaType: "application/json",
		Producer:  "cortex/sandbox",
		Source:    "somewhere",
	}
}

func TestRefValidate(t *testing.T) {
	hexes := strings.Repeat("a", 64)
	for _, c := range []struct {
		name string
		edit func(*Ref)
		ok   bool
	}{
		{"whole", func(*Ref) {}, true},
		{"no bytes", func(r *Ref) { r.Size = 0 }, true},
		{"largest", func(r *Ref) { r.Size = 1<<53 - 1 }, true},
		{"media type with parameter", func(r *Ref) { r.MediaType = "text/plain; charset=utf-8" }, true},
		{"no id", func(r *Ref) { r.ID = "" }, false},
		{"bad id", func(r *Ref) { r.ID = "art_x" }, false},
		{"no digest", func(r *Ref) { r.Digest = "" }, false},
		{"bare hex", func(r *Ref) { r.Digest = hexes }, false},
		{"upper-case hex", func(r *Ref) { r.Digest = "sha256:" + strings.Repeat("A", 64) }, false},
		{"short hex", func(r *Ref) { r.Digest = "sha256:" + hexes[1:] }, false},
		{"long hex", func(r *Ref) { r.Digest = "sha256:" + hexes + "a" }, false},
		{"other algorithm of the same length", func(r *Ref) { r.Digest = "sha512:" + hexes }, false},
		{"other algorithm", func(r *Ref) { r.Digest = "sha512:" + hexes + hexes }, false},
		{"unknown algorithm", func(r *Ref) { r.Digest = "md5:" + hexes[:32] }, false},
		{"negative size", func(r *Ref) { r.Size = -1 }, false},
		{"size beyond exact JSON", func(r *Ref) { r.Size = 1 << 53 }, false},
		{"no media type", func(r *Ref) { r.MediaType = "" }, false},
		{"media type without subtype", func(r *Ref) { r.MediaType = "text" }, false},
		{"media type with empty subtype", func(r *Ref) { r.MediaType = "text/" }, false},
		{"media type with newline", func(r *Ref) { r.MediaType = "text/plain\nX: y" }, false},
		{"long media type", func(r *Ref) { r.MediaType = "a/" + strings.Repeat("b", 254) }, false},
		{"no producer", func(r *Ref) { r.Producer = "" }, false},
		{"long producer", func(r *Ref) { r.Producer = strings.Repeat("p", 256) }, false},
		{"no source", func(r *Ref) { r.Source = "" }, false},
		{"long source", func(r *Ref) { r.Source = strings.Repeat("s", 2049) }, false},
		{"escape in source", func(r *Ref) { r.Source = "a\x1b[2J" }, false},
		{"right-to-left override in source", func(r *Ref) { r.Source = "a\u202eb" }, false},
		{"source not UTF-8", func(r *Ref) { r.Source = "a\xff" }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := valid()
			c.edit(&r)
			if err := r.Validate(); (err == nil) != c.ok {
				t.Errorf("Validate() = %v, want ok %v", err, c.ok)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	// The digest of no bytes, as FIPS 180-4 test vectors give it.
	const empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if got := Digest(nil); got != empty {
		t.Errorf("Digest(nil) = %s", got)
	}
}

func TestErrorsDoNotRepeatHostileText(t *testing.T) {
	for _, prefix := range []string{"", "sha256:"} {
		err := ValidateDigest(prefix + strings.Repeat("\x1b", 1<<20))
		if err == nil || len(err.Error()) > 512 || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("error repeats its input: %.300v", err)
		}
	}
}
