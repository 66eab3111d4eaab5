package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"tenwalls.dev/harness/reports/attest"
)

// A run that ends without a report must not have left a key.
func TestOwnKeyIsMadeOnlyForAReport(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	key, err := signer(runFlags{out: "out"}, state)
	if key != nil || err != nil {
		t.Fatalf("before the first run: a key %t, error %v", key != nil, err)
	}
	if _, err := os.Stat(state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("looking for the key made its folder: %v", err)
	}
	made, err := makeKey(state)
	if err != nil {
		t.Fatal(err)
	}
	private, public := ownKey(state)
	for file, want := range map[string]fs.FileMode{private: 0o600, public: 0o644} {
		if st, err := os.Stat(file); err != nil || st.Mode() != want {
			t.Errorf("%s: mode %v, want %v, error %v", file, st.Mode(), want, err)
		}
	}
	again, err := signer(runFlags{out: "out"}, state)
	if err != nil {
		t.Fatal(err)
	}
	first, err1 := attest.LoadPublicKey(public)
	if err1 != nil || !first.Equal(made.Public()) || !first.Equal(again.Public()) {
		t.Errorf("the key that was made is not the one that signs: %v", err1)
	}
	if key, err := signer(runFlags{}, state); key != nil || err != nil {
		t.Errorf("without --out: a key %t, error %v", key != nil, err)
	}
}

// What is wrong with a key is a usage error, told before the run.
func TestBadKeysAreToldBeforeTheRun(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, private, public string) runFlags{
		"public half alone": func(t *testing.T, private, _ string) runFlags {
			return runFlags{out: "out"}.after(t, os.Remove(private))
		},
		"readable by others": func(t *testing.T, private, _ string) runFlags {
			return runFlags{out: "out"}.after(t, os.Chmod(private, 0o644))
		},
		"no key in it": func(t *testing.T, private, _ string) runFlags {
			return runFlags{out: "out"}.after(t, os.WriteFile(private, []byte("none"), 0o600))
		},
		"--key names the public half": func(_ *testing.T, _, public string) runFlags {
			return runFlags{out: "out", key: public}
		},
		"--key names nothing": func(_ *testing.T, private, _ string) runFlags {
			return runFlags{out: "out", key: private + ".absent"}
		},
	} {
		state := t.TempDir()
		if _, err := makeKey(state); err != nil {
			t.Fatal(err)
		}
		private, public := ownKey(state)
		key, err := signer(spoil(t, private, public), state)
		var e *exitError
		if key != nil || !errors.As(err, &e) || e.code != exitUsage {
			t.Errorf("%s: a key %t, error %v", name, key != nil, err)
		}
	}
}

// after passes the flags on when what came before went well.
func (f runFlags) after(t *testing.T, err error) runFlags {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return f
}
