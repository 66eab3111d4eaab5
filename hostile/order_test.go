package hostile

import (
	"reflect"
	"testing"
)

func TestOrderRoundTrip(t *testing.T) {
	for _, o := range []Order{
		{Nonce: "N", Routes: []string{"disk/tmp"}},
		{Nonce: "N \"\n\x00<&>é", Routes: []string{"disk/tmp", "disk/root"}, Params: map[string]string{"scratch_bytes": "67108864", "odd \"": ""}},
	} {
		arg, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseOrder(arg)
		if err != nil || !reflect.DeepEqual(got, o) {
			t.Errorf("ParseOrder(%s) = %+v, %v", arg, got, err)
		}
	}
}

func TestOrderEncodeRefuses(t *testing.T) {
	for name, o := range map[string]Order{
		"nothing": {}, "no nonce": {Routes: []string{"disk/tmp"}}, "no routes": {Nonce: "N", Params: map[string]string{"a": "b"}},
	} {
		if arg, err := o.Encode(); err == nil {
			t.Errorf("%s: %s", name, arg)
		}
	}
}

func TestParseOrderIsStrict(t *testing.T) {
	const good = `{"nonce":"N","routes":["disk/tmp"]}`
	for name, arg := range map[string]string{
		"nothing":               "",
		"words":                 "disk/tmp",
		"null":                  "null",
		"no nonce":              `{"routes":["disk/tmp"]}`,
		"no routes":             `{"nonce":"N"}`,
		"empty routes":          `{"nonce":"N","routes":[]}`,
		"unknown field":         `{"nonce":"N","routes":["disk/tmp"],"secret":"s"}`,
		"wrong type":            `{"nonce":"N","routes":"disk/tmp"}`,
		"parameter of no text":  `{"nonce":"N","routes":["disk/tmp"],"params":{"tasks":32}}`,
		"cut short":             good[:len(good)-1],
		"another one behind it": good + good,
		"a word behind it":      good + " x",
	} {
		if o, err := ParseOrder(arg); err == nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
}
