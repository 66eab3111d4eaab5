package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
)

func TestWalkFindsNameAndSecret(t *testing.T) {
	secret := "twsecret-" + strings.Repeat("c", 32)
	sum := sha256.Sum256([]byte(secret))
	for name, c := range map[string]struct {
		file, text, link string
		found            string
	}{
		"name of a file":     {file: "a/b/neighbour-7", found: "a name"},
		"name of a folder":   {file: "a/neighbour-7/x", found: "a name"},
		"secret":             {file: "a/b/c", text: "xx" + secret + "xx", found: "the secret"},
		"secret after 4 KiB": {file: "a/b/c", text: strings.Repeat("x", 5000) + secret, found: "the secret"},
		"another secret":     {file: "a/b/c", text: "twsecret-" + strings.Repeat("d", 32)},
		"link":               {file: "a/b/c", link: "/run/neighbour-7/x", found: "a link"},
		"nothing":            {file: "a/b/c", text: "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			file := filepath.Join(root, c.file)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.link != "" {
				if err := os.Symlink(c.link, filepath.Join(root, "link")); err != nil {
					t.Fatal(err)
				}
			}
			m := &mountinfo.Info{ID: 1, Mountpoint: root}
			s := search{name: "neighbour-7", digest: hex.EncodeToString(sum[:])}
			if err := s.mount(m, []*mountinfo.Info{m}); err != nil {
				t.Fatal(err)
			}
			if (c.found == "") != (s.found == "") || !strings.HasPrefix(s.found, c.found) || s.entries == 0 {
				t.Errorf("found %q, want %q; %+v", s.found, c.found, s)
			}
		})
	}
}

func TestWalkLeavesOtherMountsToTheirOwnTurn(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "below", "neighbour-7"), 0o700); err != nil {
		t.Fatal(err)
	}
	above, below := &mountinfo.Info{ID: 1, Mountpoint: root}, &mountinfo.Info{ID: 2, Mountpoint: filepath.Join(root, "below")}
	s := search{name: "neighbour-7"}
	if err := s.mount(above, []*mountinfo.Info{above, below}); err != nil || s.found != "" {
		t.Errorf("found %q, %v", s.found, err)
	}
	if err := s.mount(below, []*mountinfo.Info{above, below}); err != nil || s.found == "" {
		t.Errorf("found %q, %v", s.found, err)
	}
	gone := &mountinfo.Info{ID: 3, Mountpoint: filepath.Join(root, "gone")}
	if err := s.mount(gone, []*mountinfo.Info{gone}); err == nil {
		t.Error("a mount that cannot be opened gave no error")
	}
}

func TestStrangers(t *testing.T) {
	all := []process{{pid: 1}, {pid: 5, parent: 1}, {pid: 6, parent: 5}, {pid: 7, parent: 1}, {pid: 8, parent: 7}, {pid: 9, parent: 9}}
	var got []int
	for _, p := range strangersIn(all, 5) {
		got = append(got, p.pid)
	}
	if len(got) != 3 || got[0] != 7 || got[1] != 8 || got[2] != 9 {
		t.Errorf("strangers of 5: %v", got)
	}
	if s := strangersIn(all[:5], 1); len(s) != 0 {
		t.Errorf("strangers of 1: %v", s)
	}
}
