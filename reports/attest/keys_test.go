package attest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestGenerateThenLoad(t *testing.T) {
	dir := t.TempDir()
	priv, pub := filepath.Join(dir, "key.pem"), filepath.Join(dir, "key.pub")
	made, err := GenerateKey(priv, pub)
	if err != nil {
		t.Fatal(err)
	}
	private, err := LoadPrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	public, err := LoadPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	if !made.Equal(public) || !made.Equal(private.Public()) {
		t.Error("the two files are not one pair")
	}
	for path, want := range map[string]fs.FileMode{priv: 0o600, pub: 0o644} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(priv, link); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadPrivateKey(link); err != nil {
		t.Errorf("through a symlink: %v", err)
	}
}

func TestGenerateNeverOverwrites(t *testing.T) {
	for _, taken := range []string{"key.pem", "key.pub"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, taken), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := GenerateKey(filepath.Join(dir, "key.pem"), filepath.Join(dir, "key.pub"))
		if err == nil || !strings.Contains(err.Error(), taken) || !strings.Contains(err.Error(), "another name") {
			t.Errorf("%s: %v", taken, err)
		}
		if got := folder(t, dir); len(got) != 1 || got[taken] != "old" {
			t.Errorf("%s: folder holds %v", taken, got)
		}
	}
	if _, err := GenerateKey(filepath.Join(t.TempDir(), "none", "key.pem"), "unused"); err == nil {
		t.Error("made a key in a folder that is not there")
	}
}

func TestLoadKeyRefuses(t *testing.T) {
	dir := t.TempDir()
	priv, pub := filepath.Join(dir, "key.pem"), filepath.Join(dir, "key.pub")
	if _, err := GenerateKey(priv, pub); err != nil {
		t.Fatal(err)
	}
	pemOf, err := os.ReadFile(priv)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecDER, err := x509.MarshalPKCS8PrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		write("group", pemOf, 0o640):                  "chmod 600",
		write("others", pemOf, 0o601):                 "wider than 0600",
		write("empty", nil, 0o600):                    "no PEM block",
		write("twice", bytes.Repeat(pemOf, 2), 0o600): "more than one",
		write("junk", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("junk")}), 0o600):  "junk",
		write("ecdsa", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: ecDER}), 0o600):          "not Ed25519",
		write("public", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("junk")}), 0o600): "wanted",
		write("large", bytes.Repeat([]byte("x"), maxKeyFile+1), 0o600):                                    "more than",
		filepath.Join(dir, "missing"): "no such file",
		fifo:                          "no regular file",
		dir:                           "no regular file",
	} {
		if key, err := LoadPrivateKey(path); err == nil || key != nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("private %s: %v, want %q", path, err, want)
		}
	}
	if _, err := LoadPublicKey(priv); err == nil || !strings.Contains(err.Error(), "PRIVATE KEY") {
		t.Errorf("a private key as public one: %v", err)
	}
}

func TestPrivateKeyOfSomebodyElse(t *testing.T) {
	if err := checkKeyFile("k", 0o600, 1000, 1001); err == nil || !strings.Contains(err.Error(), "uid 1000") {
		t.Errorf("err = %v", err)
	}
	if err := checkKeyFile("k", 0o400, 1001, 1001); err != nil {
		t.Error(err)
	}
}
