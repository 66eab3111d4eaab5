package attest

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"tenwalls.dev/harness/internal/durable"
)

const (
	privateType = "PRIVATE KEY" // PKCS#8, RFC 5958
	publicType  = "PUBLIC KEY"  // SubjectPublicKeyInfo, RFC 5280 section 4.1
	maxKeyFile  = 64 << 10      // bytes
)

// KeyID names a public key: "sha256:<hex>" of its SubjectPublicKeyInfo in DER.
func KeyID(pub ed25519.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return "", fmt.Errorf("key id: %w", err)
	}
	sum := sha256.Sum256(der)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// LoadPrivateKey reads an Ed25519 key, PKCS#8 in PEM, from a regular file that
// is ours and that nobody else may read or write (mode 0600 or narrower). A
// symlink is followed, since secrets are mounted that way; what it leads to is
// what is checked.
func LoadPrivateKey(path string) (ed25519.PrivateKey, error) {
	data, info, err := readKeyFile(path)
	if err != nil {
		return nil, fmt.Errorf("load private key: %w", err)
	}
	owner := info.Sys().(*syscall.Stat_t).Uid // always that type on Linux
	if err := checkKeyFile(path, info.Mode(), int(owner), os.Geteuid()); err != nil {
		return nil, fmt.Errorf("load private key: %w", err)
	}
	der, err := decodePEM(data, privateType)
	if err != nil {
		return nil, fmt.Errorf("load private key %s: %w", path, err)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("load private key %s: %w", path, err)
	}
	priv, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("load private key %s: is a %T, not Ed25519: make one with \"openssl genpkey -algorithm ed25519\"", path, key)
	}
	return priv, nil
}

// LoadPublicKey reads an Ed25519 key, SubjectPublicKeyInfo in PEM.
func LoadPublicKey(path string) (ed25519.PublicKey, error) {
	data, _, err := readKeyFile(path)
	if err != nil {
		return nil, fmt.Errorf("load public key: %w", err)
	}
	der, err := decodePEM(data, publicType)
	if err != nil {
		return nil, fmt.Errorf("load public key %s: %w", path, err)
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, fmt.Errorf("load public key %s: %w", path, err)
	}
	pub, ok := key.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("load public key %s: is a %T, not Ed25519", path, key)
	}
	return pub, nil
}

// checkKeyFile refuses a private key that others could have read or replaced.
func checkKeyFile(path string, mode fs.FileMode, owner, us int) error {
	if owner != us {
		return fmt.Errorf("%s belongs to uid %d and we are uid %d: chown it, or make a key of our own", path, owner, us)
	}
	if mode.Perm()&^0o600 != 0 {
		return fmt.Errorf("%s has mode %04o, which is wider than 0600: chmod 600 it, and make another key if it was ever shared", path, mode.Perm())
	}
	return nil
}

// readKeyFile reads through one descriptor, so that what is checked is what is
// read. Without O_NONBLOCK a named pipe would hold us for ever.
func readKeyFile(path string) (data []byte, info fs.FileInfo, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is no regular file (%s)", path, info.Mode().Type())
	}
	data, err = io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err == nil && len(data) > maxKeyFile {
		err = fmt.Errorf("%s: more than %d bytes", path, maxKeyFile)
	}
	return data, info, err
}

// decodePEM takes exactly one block of that type.
func decodePEM(data []byte, kind string) ([]byte, error) {
	block, rest := pem.Decode(data)
	switch {
	case block == nil:
		return nil, fmt.Errorf("holds no PEM block: a %q block is wanted", kind)
	case block.Type != kind:
		return nil, fmt.Errorf("holds a %q block where a %q block is wanted", said(block.Type), kind)
	case len(rest) > 0:
		return nil, errors.New("holds more than one PEM block")
	}
	return block.Bytes, nil
}

// GenerateKey makes a key pair and writes the private half (mode 0600) and the
// public half (mode 0644). It never overwrites: when either file is there
// already, neither is written.
func GenerateKey(privPath, pubPath string) (ed25519.PublicKey, error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	privDER, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	pubDER, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	if err := create(privPath, 0o600, &pem.Block{Type: privateType, Bytes: privDER}); err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	if err := create(pubPath, 0o644, &pem.Block{Type: publicType, Bytes: pubDER}); err != nil {
		return nil, fmt.Errorf("generate key: %w", errors.Join(err, os.Remove(privPath)))
	}
	return pub, nil
}

// create writes a file that must not be there yet, and leaves none on failure.
func create(path string, mode fs.FileMode, block *pem.Block) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: choose another name, or move the old key away", err)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(durable.Remedied(err), os.Remove(path))
		}
	}()
	if err := pem.Encode(f, block); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return durable.SyncFolder(filepath.Dir(path))
}
