package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

func TestEncodedClaimsAreBoundedAndParse(t *testing.T) {
	for name, text := range map[string]string{
		"long":         strings.Repeat("a", 1<<16),
		"escapes":      strings.Repeat("\x00\"\\\n", 1<<12),
		"no text":      strings.Repeat("\xffa", 1<<12),
		"wide letters": strings.Repeat("\u20ac", 1<<12),
		"cut letter":   strings.Repeat("a", hostile.MaxNote-1) + "\u20ac",
		"markup":       strings.Repeat("<>&", 1<<12),
	} {
		t.Run(name, func(t *testing.T) {
			line := encodeClaim(hostile.Claim{
				Nonce: "n", Attempt: "census", Route: "all", Event: hostile.Stopped, Kind: hostile.InForce,
				Place: hostile.EntryPointFilter, Call: text, Note: text,
			})
			if len(line) > hostile.MaxClaimBytes || bytes.Count(line, []byte("\n")) != 1 {
				t.Fatalf("line of %d bytes, %d lines", len(line), bytes.Count(line, []byte("\n")))
			}
			got, err := hostile.ParseClaims(bytes.NewReader(line), "n", func(string, string) bool { return true })
			if err != nil || len(got.Claims) != 1 {
				t.Fatalf("parsed %+v, %v", got, err)
			}
			if note := got.Claims[0].Note; !utf8.ValidString(note) || len(note) < 200 {
				t.Errorf("note of %d bytes: %.40q", len(note), note)
			}
		})
	}
	if line := encodeClaim(hostile.Claim{Nonce: strings.Repeat("n", hostile.MaxClaimBytes)}); line != nil {
		t.Errorf("a claim that cannot be bounded gave %d bytes", len(line))
	}
}

func TestKindOf(t *testing.T) {
	for errno, want := range map[unix.Errno]hostile.Kind{
		unix.EPERM: hostile.EPERM, unix.EROFS: hostile.EROFS, unix.ENETUNREACH: hostile.ENETUNREACH,
		unix.EOPNOTSUPP: hostile.EOPNOTSUPP, unix.EWOULDBLOCK: hostile.EAGAIN, unix.EFAULT: hostile.EFAULT, unix.ESRCH: hostile.Other, 0: hostile.Other,
	} {
		if got := kindOf(errno); got != want {
			t.Errorf("kindOf(%d) is %q, not %q", int(errno), got, want)
		}
	}
	for kind := range errnoKinds {
		if strings.ToUpper(string(kind)) != string(kind) {
			t.Errorf("%q is taken for an errno", kind)
		}
	}
}
