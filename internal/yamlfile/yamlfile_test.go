package yamlfile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

type span time.Duration

func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a time span", text)
	}
	*s = span(d)
	return nil
}

type file struct {
	Version int      `yaml:"version"`
	Name    string   `yaml:"name"`
	Load    float64  `yaml:"load"`
	On      bool     `yaml:"on"`
	Wait    span     `yaml:"wait"`
	Flags   []string `yaml:"flags"`
	Part    struct {
		Small int  `yaml:"small"`
		Wait  span `yaml:"wait"`
	} `yaml:"part"`
}

func asIs(s string) string { return s }

func located(text string, more ...error) string {
	var f file
	err := errors.Join(append([]error{Decode([]byte(text), &f, asIs)}, more...)...)
	if err == nil {
		return ""
	}
	return Locate(err, []byte(text), "kind", "f").Error()
}

func TestEveryFaultIsToldByLineAndField(t *testing.T) {
	for text, want := range map[string]string{
		"version: [1]":                  "kind f:1: version: a whole number is wanted, not a list",
		"version: {a: 1}":               "kind f:1: version: a whole number is wanted, not fields",
		"version: 1.5":                  "kind f:1: version: a whole number is wanted, not a number with a fraction",
		"version: 18446744073709551615": "kind f:1: version: a whole number is wanted, not a number so large",
		"\nload: much":                  "kind f:2: load: a number is wanted, not text",
		"on: 1.5":                       "kind f:1: on: true or false is wanted, not a number with a fraction",
		"name: [a]":                     "kind f:1: name: text is wanted, not a list",
		"wait: 2":                       `kind f:1: wait: "2" is not a time span`,
		"wait:\n  - 2s":                 "kind f:1: wait: one value is wanted, not a list",
		"wait: |\n  long":               `kind f:1: wait: "long" is not a time span`,
		"wait: 'x y'":                   `kind f:1: wait: "x y" is not a time span`,
		"flags: --a":                    "kind f:1: flags: a list is wanted, not text",
		"flags:\n  - a\n  - [b]":        "kind f:3: flags[1]: text is wanted, not a list",
		"part: 3s":                      "kind f:1: part: fields are wanted, not text",
		"part:\n  wait: soon":           `kind f:2: part.wait: "soon" is not a time span`,
		"part:\n  colour: blue":         `kind f:2: unknown field "part.colour"`,
		"own: x":                        `kind f:1: unknown field "own"`,
		"version: 1\nversion: 2":        "kind f:2: mapping key \"version\" already defined at [1:1]",
		"- a":                           "kind f:1: fields are wanted, not a list: write NAME: VALUE, one a line",
		"text":                          "kind f:1: fields are wanted, not text: write NAME: VALUE, one a line",
		"part:\n\twait: 2s":             "kind f:2: indented with a tab; YAML wants spaces",
		"version: 1\n---\nversion: 1":   "kind f: more than one YAML document: keep one",
		"version: *a":                   "kind f:1: could not find alias \"a\"",
		"wait: 2\nversion: []\npart:\n  small: x": "kind f:1: wait: \"2\" is not a time span\nkind f:2: version: a whole number is wanted, not a list\nkind f:4: part.small: a whole number is wanted, not text",
	} {
		if got := located(text); got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// A wrong field does not hide the others, whose values are read.
func TestWhatIsRightIsRead(t *testing.T) {
	f := file{Name: "default", Flags: []string{"default"}, Wait: 7}
	text := "version: 3\nload: x\nname:\nflags: [a, b]\npart:\n  small: []\n  wait: 2s\nwait: 5\non: true\n"
	if err := Decode([]byte(text), &f, asIs); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("%v", err)
	}
	want := file{Version: 3, Name: "default", Flags: []string{"a", "b"}, Wait: 7, On: true}
	want.Part.Wait = span(2 * time.Second)
	if !reflect.DeepEqual(f, want) {
		t.Errorf("got  %+v\nwant %+v", f, want)
	}
}

func TestAnEmptyFileChangesNothing(t *testing.T) {
	for text, empty := range map[string]bool{"": true, "\n \n": true, "# words\n": true, "---\n": true, "null": false, "part:\n": false, "version: 0": false, "a: [": false} {
		f := file{Name: "default", Part: file{}.Part}
		f.Part.Small = 9
		if err := Decode([]byte(text), &f, asIs); err != nil && text != "a: [" || f.Name != "default" || f.Part.Small != 9 {
			t.Errorf("%q: %v, %+v", text, err, f)
		}
		if Empty([]byte(text)) != empty {
			t.Errorf("%q: empty %t", text, !empty)
		}
	}
}

// A default that does not fit to a wrong value is a consequence; one that does
// not fit to a right one is the fault.
func TestConsequencesAreLeftOut(t *testing.T) {
	behind := FieldError{Field: "part.wait", Problem: "too long for part.small"}
	if got := located("part:\n  small: []", behind); strings.Contains(got, "part.wait") {
		t.Errorf("a consequence is told: %s", got)
	}
	want := "kind f: part.wait: too long for part.small (the file leaves it out: this is about its default)\nkind f:1: version: a whole number is wanted, not a list"
	if got := located("version: []\npart:\n  small: 1", behind); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
