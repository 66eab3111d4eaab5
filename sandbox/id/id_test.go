package id

import (
	"slices"
	"strings"
	"testing"
)

const good = "sjob_01h455vb4pex5vsknk084sn02q"

func TestNewIsValidSortableAndUnique(t *testing.T) {
	seen := map[ID]bool{}
	var made []string // the leading 48 bits: milliseconds
	for range 1000 {
		i := New("sjob")
		if err := i.Validate(); err != nil {
			t.Fatal(err)
		}
		if i.Prefix() != "sjob" {
			t.Fatalf("prefix of %q = %q", i, i.Prefix())
		}
		if seen[i] {
			t.Fatalf("%q made twice", i)
		}
		seen[i] = true
		made = append(made, string(i[:len("sjob_")+10]))
	}
	if !slices.IsSorted(made) {
		t.Error("identifiers made one after another do not sort in that order")
	}
}

func TestNewRefusesBadPrefix(t *testing.T) {
	for _, p := range []Prefix{"", "A", "a1", "_a", "a_", Prefix(strings.Repeat("a", 64))} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("New(%q) did not panic", p)
				}
			}()
			New(p)
		}()
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, in string
		ok       bool
	}{
		{"whole", good, true},
		{"prefix with underscore", "a_b_01h455vb4pex5vsknk084sn02q", true},
		{"longest prefix", strings.Repeat("a", 63) + "_01h455vb4pex5vsknk084sn02q", true},
		{"empty", "", false},
		{"no prefix", "01h455vb4pex5vsknk084sn02q", false},
		{"empty prefix", "_01h455vb4pex5vsknk084sn02q", false},
		{"no suffix", "sjob_", false},
		{"short suffix", good[:len(good)-1], false},
		{"long suffix", good + "0", false},
		{"upper case", strings.ToUpper(good), false},
		{"letter outside the alphabet", "sjob_01h455vb4pex5vsknk084sn02i", false},
		{"overflow", "sjob_81h455vb4pex5vsknk084sn02q", false},
		{"zero", "sjob_00000000000000000000000000", false},
		{"digit in prefix", "sjob2_01h455vb4pex5vsknk084sn02q", false},
		{"prefix too long", strings.Repeat("a", 64) + "_01h455vb4pex5vsknk084sn02q", false},
		{"path", "../" + good, false},
		{"slash inside", "sj/ob_01h455vb4pex5vsknk084sn02q", false},
		{"NUL", good + "\x00", false},
		{"newline", good + "\n", false},
		{"fullwidth", "ｓjob_01h455vb4pex5vsknk084sn02q", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse(c.in)
			if (err == nil) != c.ok {
				t.Fatalf("Parse(%q) = %v, want ok %v", c.in, err, c.ok)
			}
			if c.ok && string(got) != c.in || !c.ok && got != "" {
				t.Errorf("Parse(%q) = %q", c.in, got)
			}
		})
	}
}

func TestErrorsDoNotRepeatHostileText(t *testing.T) {
	for _, in := range []string{"\x1b[2J" + good, strings.Repeat("x", 1<<20)} {
		err := ID(in).Validate()
		if err == nil || strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 256 {
			t.Errorf("error repeats its input: %.300v", err)
		}
	}
}

func TestPrefix(t *testing.T) {
	for in, want := range map[ID]Prefix{good: "sjob", "a_b_x": "a_b", "": "", "_x": "", "plain": ""} {
		if got := in.Prefix(); got != want {
			t.Errorf("prefix of %q = %q, want %q", in, got, want)
		}
	}
}
