package runsc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// script is a program that stands where runsc should.
func script(t testing.TB, body string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "runsc")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestIdentify(t *testing.T) {
	file := script(t, `[ "$*" = --version ] && [ -z "$SECRET" ] && echo "runsc version release-1" && echo "spec: 1.0"`)
	t.Setenv("SECRET", "of the caller")
	got, err := Identify(t.Context(), file)
	digest, e := FileDigest(file)
	if err != nil || e != nil || got != (Identity{Path: file, Version: "release-1", Digest: digest}) {
		t.Errorf("%+v, %v, %v", got, err, e)
	}
}

func TestIdentifyRefuses(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\necho runsc version 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	noProgram := filepath.Join(dir, "no-program")
	if err := os.WriteFile(noProgram, []byte{0x7f, 'E', 'L', 'F'}, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want string }{
		{"missing", filepath.Join(dir, "absent"), "no such file"},
		{"empty path", "", "no runsc"},
		{"folder", dir, "not an executable file"},
		{"not executable", plain, "not an executable file"},
		{"no program", noProgram, "exec format error"},
		{"another program", script(t, "echo runc version 1.1"), `not runsc: it says "runc version 1.1"`},
		{"says nothing", script(t, ""), `not runsc: it says ""`},
		{"words in front", script(t, "echo warning; echo runsc version 1"), "not runsc"},
		{"fails", script(t, "echo 'no such flag' >&2; exit 3"), "exit status 3: no such flag"},
		{"crashes", script(t, "echo before; kill -SEGV $$"), "signal: segmentation fault"},
		{"escapes", script(t, `printf '\033[2J\033]0;x\007bad\n'`), `it says "[2J]0;xbad"`},
	} {
		_, err := Identify(t.Context(), c.path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "runtime.path: ") || len(err.Error()) > 2*maxReason {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A program that hangs is given up, with what it started, however much it says.
func TestIdentifyIsBounded(t *testing.T) {
	for name, body := range map[string]string{
		"hangs":           "exec sleep 300",
		"waits for child": "sleep 300 & echo $! > %s\nwait",
		"floods":          "while :; do echo runsc version 1; done",
	} {
		said := filepath.Join(t.TempDir(), "pid")
		file := script(t, strings.ReplaceAll(body, "%s", said))
		began := time.Now()
		_, err := identify(t.Context(), file, 200*time.Millisecond)
		if err == nil || !strings.Contains(err.Error(), "did not end within 200ms") {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: given up after %s", name, took)
		}
		if data, err := os.ReadFile(said); err == nil {
			var child int
			if _, err := fmt.Sscan(string(data), &child); err != nil {
				t.Fatal(err)
			}
			gone(t, child)
		}
	}
	if identifyWithin > 30*time.Second {
		t.Errorf("the bound is %s", identifyWithin)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the user has had enough"))
	if _, err := Identify(ctx, script(t, "echo runsc version 1")); err == nil || !strings.Contains(err.Error(), "had enough") {
		t.Errorf("cancelled: %v", err)
	}
}

// gone waits until that process is no more, or only a zombie that somebody else
// has to reap.
func gone(t testing.TB, pid int) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Errorf("process %d is left", pid)
			return
		}
	}
}

func TestFileDigestFollowsTheFile(t *testing.T) {
	file := script(t, "one")
	first, err := FileDigest(file)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	// The same size and the same time of change, as a careful intruder leaves it.
	if err := os.WriteFile(file, []byte("#!/bin/sh\ntwo\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, st.ModTime(), st.ModTime()); err != nil {
		t.Fatal(err)
	}
	if second, err := FileDigest(file); err != nil || second == first {
		t.Errorf("a changed file has the digest %s still (%v)", second, err)
	}
	for _, no := range []string{t.TempDir(), filepath.Join(t.TempDir(), "absent"), "/dev/null"} {
		if d, err := FileDigest(no); err == nil {
			t.Errorf("%s has the digest %s", no, d)
		}
	}
}
