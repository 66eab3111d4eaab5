package main

import (
	"reflect"
	"testing"

	"github.com/goccy/go-yaml"

	"tenwalls.dev/harness/sandbox/runsc"
)

// The commented default says each value itself, so it is read over nothing.
func TestDefaultConfigIsWrittenOut(t *testing.T) {
	var got runsc.Config
	if err := yaml.UnmarshalWithOptions(defaultConfig, &got, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	if want := runsc.DefaultConfig(); !reflect.DeepEqual(got, want) {
		t.Errorf("config_default.yaml reads as\n%+v\nthe default is\n%+v", got, want)
	}
	if _, err := runsc.ParseConfig(defaultConfig, "config_default.yaml"); err != nil {
		t.Error(err)
	}
}
