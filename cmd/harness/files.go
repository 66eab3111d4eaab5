package main

import (
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/attest"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/runsc"
)

// signer loads the key before the run, so that a bad one is told at once. It is
// nil when nothing will be signed, and while the harness has no key of its own:
// that is made by [makeKey] for a report that is there to be signed, so that a
// run which ends without one leaves no key behind.
func signer(f runFlags, stateDir string) (crypto.Signer, error) {
	switch {
	case f.out == "":
		return nil, nil
	case f.key != "":
		return loadKey("--key", f.key)
	}
	private, public := ownKey(stateDir)
	if _, err := os.Lstat(private); !errors.Is(err, fs.ErrNotExist) {
		return loadKey("own key", private)
	}
	if _, err := os.Lstat(public); err == nil {
		return nil, usage(fmt.Errorf("own key: %s is there without its private half %s: put that back, or move the public one away", public, private))
	}
	return nil, nil
}

// loadKey returns no nil key inside a [crypto.Signer], which would not be nil.
func loadKey(whose, file string) (crypto.Signer, error) {
	key, err := attest.LoadPrivateKey(file)
	if err != nil {
		return nil, usage(fmt.Errorf("%s: %w", whose, err))
	}
	return key, nil
}

// ownKey is where the harness keeps the key that signs when no other is named.
func ownKey(stateDir string) (private, public string) {
	dir := filepath.Join(stateDir, "keys")
	return filepath.Join(dir, "harness.key"), filepath.Join(dir, "harness.pub")
}

// makeKey makes the harness's own key, once.
func makeKey(stateDir string) (crypto.Signer, error) {
	private, public := ownKey(stateDir)
	if err := os.MkdirAll(filepath.Dir(private), 0o700); err != nil {
		return nil, fmt.Errorf("make key folder: %w", err)
	}
	if _, err := attest.GenerateKey(private, public); err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	slog.Info("a key was made and signs from now on: give its public half to whoever verifies", "key", private, "public", public)
	return loadKey("own key", private)
}

// written is what a run put into its folder.
type written struct {
	paths   []string // in a fixed order
	digest  string   // of report.json
	expires time.Time
}

// write puts the files of a run into the folder, all or none.
func write(r *reports.Report, f runFlags, cfg runsc.Config, key crypto.Signer) (written, error) {
	if key == nil {
		var err error
		if key, err = makeKey(cfg.StateDir); err != nil {
			return written{}, err
		}
	}
	now := time.Now()
	files, err := documents(r, cfg.Limits.Limits(), f.validFor, key, now)
	if err != nil {
		return written{}, err
	}
	if err := reports.WriteFiles(f.out, files); err != nil {
		return written{}, fmt.Errorf("--out: %w", err)
	}
	// As the statement carries it.
	w := written{digest: evidence.Digest(files[reports.ReportFile]), expires: now.Add(f.validFor).UTC().Truncate(time.Second)}
	for _, name := range []string{reports.ReportFile, reports.JUnitFile, reports.AttestationFile, reports.CapabilitiesFile} {
		if _, ok := files[name]; ok {
			w.paths = append(w.paths, filepath.Join(f.out, name))
		}
	}
	return w, nil
}

// documents are the files of a run, by name.
func documents(r *reports.Report, limits sandbox.Limits, validFor time.Duration, key crypto.Signer, now time.Time) (map[string][]byte, error) {
	report, err := reports.Encode(r)
	if err != nil {
		return nil, err
	}
	junit, err := reports.JUnit(r)
	if err != nil {
		return nil, err
	}
	s := attest.Statement{
		Run: r.Run, Outcome: r.Outcome, Issued: now, Expires: now.Add(validFor),
		Host:          attest.StatementHost{BootID: r.Host.BootID, Kernel: r.Host.Kernel},
		RuntimeDigest: r.Runtime.Digest, ConfigDigest: r.ConfigDigest,
		ReportDigest: evidence.Digest(report), JUnitDigest: evidence.Digest(junit),
	}
	if r.Proof != nil {
		s.ProofDigest = r.Proof.Digest
	}
	files := map[string][]byte{reports.ReportFile: report, reports.JUnitFile: junit}
	if qualifies(r) {
		capabilities, err := json.MarshalIndent(capabilitiesOf(r, limits, s), "", " ")
		if err != nil {
			return nil, fmt.Errorf("encode capabilities: %w", err)
		}
		s.Capabilities = capabilities
		files[reports.CapabilitiesFile] = append(slices.Clone(capabilities), '\n')
	}
	attestation, err := attest.Sign(s, key)
	if err != nil {
		return nil, err
	}
	if files[reports.AttestationFile], err = attestation.Encode(); err != nil {
		return nil, err
	}
	return files, nil
}

// qualifies tells whether the run qualifies the runner: a selection of trials
// never does, however it ended.
func qualifies(r *reports.Report) bool {
	return r.Outcome == hostile.Qualified && r.Complete && r.Interrupted == "" && r.Unproven == ""
}

// capabilitiesOf is what a qualified run lets production publish. It expires
// with the statement, to the second.
func capabilitiesOf(r *reports.Report, limits sandbox.Limits, s attest.Statement) sandbox.Capabilities {
	return sandbox.Capabilities{
		SchemaVersion: sandbox.SchemaVersion, Runtime: sandbox.RuntimeRunsc, RuntimeDigest: r.Runtime.Digest, Profile: r.Profile,
		Qualification: r.Run + " " + s.ReportDigest, QualifiedUntil: s.Expires.UTC().Truncate(time.Second), Limits: limits,
	}
}
