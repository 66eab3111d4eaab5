package runsc

import (
	"strings"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	for _, c := range []struct {
		text string
		want Size // -1: refused
		back string
	}{
		{"0", 0, "0B"}, {"0B", 0, "0B"}, {"0GiB", 0, "0B"}, {"1B", 1, "1B"}, {"1023B", 1023, "1023B"}, {"1024B", 1024, "1KiB"},
		{"256MiB", 256 << 20, "256MiB"}, {" 4 KiB ", 4096, "4KiB"}, {"1536KiB", 1536 << 10, "1536KiB"}, {"8192TiB", 1 << 53, "8192TiB"},
		{"", -1, ""}, {"B", -1, ""}, {"MiB", -1, ""}, {"1", -1, ""}, {"1MB", -1, ""}, {"1mib", -1, ""}, {"1.5MiB", -1, ""}, {"-1B", -1, ""},
		{"1e3B", -1, ""}, {"0x10B", -1, ""}, {"8193TiB", -1, ""}, {"9007199254740993B", -1, ""}, {"99999999999999999999B", -1, ""},
		{"+5B", -1, ""}, {"+1MiB", -1, ""}, {"+0B", -1, ""}, {"-0B", -1, ""}, {"1_024B", -1, ""}, {"1MiB1KiB", -1, ""}, {"1 MiB MiB", -1, ""},
	} {
		var s Size
		err := s.UnmarshalText([]byte(c.text))
		if (err != nil) != (c.want < 0) {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if err != nil {
			if !strings.Contains(err.Error(), "for example 256MiB") || s != 0 {
				t.Errorf("%q: error %v, size %d: want a hint and no change", c.text, err, s)
			}
			continue
		}
		back, err := s.MarshalText()
		if s != c.want || err != nil || string(back) != c.back {
			t.Errorf("%q is %d and writes %q (%v), want %d and %q", c.text, s, back, err, c.want, c.back)
		}
	}
}

func FuzzSize(f *testing.F) {
	for _, s := range []string{"0", "1B", "256MiB", "8192TiB", "-1B", "+1B", "1 KiB", "\x00B"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s, again Size
		if s.UnmarshalText([]byte(text)) != nil {
			return
		}
		if s < 0 || s > 1<<53 {
			t.Errorf("%q is %d", text, s)
		}
		if err := again.UnmarshalText([]byte(s.String())); err != nil || again != s {
			t.Errorf("%q is %d, writes %s and is read again as %d (%v)", text, s, s, again, err)
		}
	})
}

func TestDuration(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration // -1: refused
	}{
		{"10s", 10 * time.Second}, {"1m30s", 90 * time.Second}, {" 1h ", time.Hour}, {"0s", 0}, {"0", 0}, {"1.5s", 1500 * time.Millisecond},
		{"-1s", -1}, {"+1s", -1}, {"-0s", -1}, {"10", -1}, {"", -1}, {"1d", -1}, {"9999999h", -1}, {"ten", -1},
	} {
		var d Duration
		err := d.UnmarshalText([]byte(c.text))
		if (err != nil) != (c.want < 0) || (err == nil && time.Duration(d) != c.want) || (err != nil && d != 0) {
			t.Errorf("%q: %s, %v, want %s", c.text, time.Duration(d), err, c.want)
		}
	}
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"10s", "1m30s", "-1s", "0", "1ns"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d, again Duration
		if d.UnmarshalText([]byte(text)) != nil {
			return
		}
		back, err := d.MarshalText()
		if err != nil || again.UnmarshalText(back) != nil || again != d || d < 0 {
			t.Errorf("%q is %d, writes %q and is read again as %d (%v)", text, d, back, again, err)
		}
	})
}
