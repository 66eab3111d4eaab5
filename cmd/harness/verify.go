package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/bounded"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/attest"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/suites"
)

// verifyFlags say what a verification compares with.
type verifyFlags struct {
	keys    []string
	runsc   string
	offline bool
}

func verifyCommand() *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use:   "verify DIR|FILE --key PUB",
		Short: "Check an attestation, its files, its evidence and this host",
		Long: `Check the attestation in DIR, or FILE and what lies beside it: its signature and
expiry, the digests of report.json, junit.xml and capabilities.json, and whether
it is about this host's runsc, kernel and boot. The evidence in the report is
judged again, and must come to the same verdicts.

In DIR the report and junit.xml have to be there; beside FILE what is not there
is not compared. Exit code 4 means that the attestation is worth nothing here.
When it is valid, the exit code is the outcome's: 0, 1 or 3.`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return verify(cmd.Context(), args[0], f, cmd.OutOrStdout())
		},
	}
	c.Flags().StringSliceVar(&f.keys, "key", nil, "trusted Ed25519 public key, PEM; may be repeated")
	c.Flags().StringVar(&f.runsc, "runsc", "", "this host's runsc (default: the path in the report)")
	c.Flags().BoolVar(&f.offline, "offline", false, "do not compare with this host")
	return c
}

func verify(ctx context.Context, path string, f verifyFlags, stdout io.Writer) error {
	keys, err := trusted(f.keys)
	if err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err != nil {
		return invalid(fmt.Errorf("no attestation: %w", err))
	}
	whole := st.IsDir()
	dir := filepath.Dir(path)
	if whole {
		dir, path = path, filepath.Join(path, reports.AttestationFile)
	}
	data, err := bounded.Read(path, reports.MaxReport)
	if err != nil {
		return invalid(fmt.Errorf("no attestation: %w", err))
	}
	attestation, err := attest.DecodeAttestation(data)
	if err != nil {
		return invalid(fmt.Errorf("%s: %w", path, err))
	}
	s, err := attest.Verify(attestation, keys, time.Now())
	if err != nil {
		return invalid(fmt.Errorf("%s: %w", path, err))
	}
	v := &verification{dir: dir, whole: whole, statement: s}
	v.files()
	if !f.offline {
		v.host(ctx, f.runsc)
	}
	if err := errors.Join(v.faults...); err != nil {
		return invalid(err)
	}
	if err := tell(stdout, v.words(attestation.KeyID, f.offline)); err != nil {
		return err
	}
	return exitOf(s.Outcome)
}

func trusted(files []string) ([]ed25519.PublicKey, error) {
	if len(files) == 0 {
		return nil, usage(errors.New("--key PUB is needed: the public key that is trusted, from another place than the attestation"))
	}
	var keys []ed25519.PublicKey
	for _, file := range files {
		key, err := attest.LoadPublicKey(file)
		if err != nil {
			return nil, usage(fmt.Errorf("--key: %w", err))
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// verification compares one statement, whose signature was good, with the files
// beside it and with this host.
type verification struct {
	dir       string
	whole     bool // a run's folder: what belongs in it has to be there
	statement attest.Statement
	report    *reports.Report // nil when it is not there
	absent    []string        // files that were not compared
	faults    []error
}

func (v *verification) fault(format string, args ...any) {
	v.faults = append(v.faults, fmt.Errorf(format, args...))
}

func (v *verification) files() {
	if data, ok := v.file(reports.ReportFile, v.statement.ReportDigest); ok {
		v.evidence(data)
	}
	v.file(reports.JUnitFile, v.statement.JUnitDigest)
	v.capabilities()
}

// file reads a file whose digest is in the statement.
func (v *verification) file(name, digest string) ([]byte, bool) {
	data, ok := v.read(name, true)
	if !ok {
		return nil, false
	}
	if seen := evidence.Digest(data); seen != digest {
		v.fault("%s is not the file that was attested: its digest is %s, attested is %s", filepath.Join(v.dir, name), seen, digest)
		return nil, false
	}
	return data, true
}

func (v *verification) read(name string, needed bool) ([]byte, bool) {
	path := filepath.Join(v.dir, name)
	data, err := bounded.Read(path, reports.MaxReport)
	switch {
	case errors.Is(err, fs.ErrNotExist) && needed && v.whole:
		v.fault("%s was attested and is not there", path)
	case errors.Is(err, fs.ErrNotExist) && needed:
		v.absent = append(v.absent, name)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		v.fault("read attested file: %w", err)
	}
	return data, err == nil
}

// evidence compares the report with the statement, and judges again.
func (v *verification) evidence(data []byte) {
	r, err := reports.Decode(data)
	if err != nil {
		v.fault("%s: %w", filepath.Join(v.dir, reports.ReportFile), err)
		return
	}
	v.report = r
	s := v.statement
	for _, c := range []struct{ what, report, statement string }{
		{"run", r.Run, s.Run},
		{"outcome", string(r.Outcome), string(s.Outcome)},
		{"kernel", r.Host.Kernel, s.Host.Kernel},
		{"boot id", r.Host.BootID, s.Host.BootID},
		{"runtime digest", r.Runtime.Digest, s.RuntimeDigest},
		{"configuration digest", r.ConfigDigest, s.ConfigDigest},
	} {
		if c.report != c.statement {
			v.fault("%s: the report says %q, the attestation %q", c.what, c.report, c.statement)
		}
	}
	judged := make([]reports.Trial, 0, len(r.Trials))
	for _, t := range r.Trials {
		again := suites.Judge(t)
		if again.Verdict != t.Verdict {
			v.fault("%s: the report says %s, its evidence judged again is %s: %s", t.ID, t.Verdict, again.Verdict, again.Reason)
		}
		judged = append(judged, again)
	}
	o := suites.Outcome(judged)
	if r.Interrupted != "" || r.Unproven != "" { // then nothing else can have come of it
		o = hostile.Unproven
	}
	if o != r.Outcome {
		v.fault("outcome: the report says %s, its evidence judged again is %s", r.Outcome, o)
	}
}
