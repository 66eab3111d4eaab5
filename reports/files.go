package reports

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tenwalls.dev/harness/internal/durable"
)

// Names of the files of one run in its folder.
const (
	ReportFile       = "report.json"
	JUnitFile        = "junit.xml"
	CapabilitiesFile = "capabilities.json" // only beside a qualified report
	AttestationFile  = "attestation.json"  // of every run that was not interrupted
)

// written is every name that a run may write, evidence first. Files are put in
// place in this order, so that nothing vouches for evidence that is not there yet.
var written = []string{ReportFile, JUnitFile, CapabilitiesFile, AttestationFile}

// ProofFile is a proof in its folder; beside it stands its [JUnitFile].
const ProofFile = "prove.json"

var writtenByProof = []string{JUnitFile, ProofFile}

const temporary = ".tenwalls-" // prefix of files that are not whole yet

// WriteFiles puts the files of one run, by name, into dir, all or none. The
// folder is made when it is missing.
//
// A file of an earlier run that this run does not produce is removed before
// anything else, so that an old capability never stands beside a refused
// report, nor survives a full disk. Then each file is written under another name
// in the same folder and synced, all are renamed, and the folder is synced.
// When the disk is full the earlier run's other files stand as they were and
// nothing half-written is left. Two runs at once must not share a folder.
func WriteFiles(dir string, files map[string][]byte) error {
	return writeFiles(dir, written, files)
}

// WriteProofFiles is [WriteFiles] for the files of one proof. Into the folder of
// a run it writes nothing: the two have a file of the same name, and a run's is
// attested.
func WriteProofFiles(dir string, files map[string][]byte) error {
	if _, err := os.Lstat(filepath.Join(dir, ReportFile)); err == nil {
		return fmt.Errorf("write files: %s holds the report of a run: choose another folder for the proof", dir)
	}
	return writeFiles(dir, writtenByProof, files)
}

func writeFiles(dir string, known []string, files map[string][]byte) (err error) {
	rank := func(name string) int { return slices.Index(known, name) }
	names := slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		return cmp.Compare(rank(a), rank(b))
	})
	for _, name := range names {
		if rank(name) < 0 {
			return fmt.Errorf("write files: %q is no file to write there (%s)", name, strings.Join(known, ", "))
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write files: %w", durable.Remedied(err))
	}
	if err := removeStale(dir, known, files); err != nil {
		return fmt.Errorf("write files: %w", durable.Remedied(err))
	}
	temps := map[string]string{}
	defer func() {
		for _, temp := range temps {
			if e := os.Remove(temp); e != nil {
				err = errors.Join(err, fmt.Errorf("write files: clean up: %w", e))
			}
		}
	}()
	for _, name := range names {
		temp, err := writeTemporary(dir, name, files[name])
		if temp != "" {
			temps[name] = temp
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", filepath.Join(dir, name), durable.Remedied(err))
		}
	}
	for _, name := range names {
		if err := os.Rename(temps[name], filepath.Join(dir, name)); err != nil {
			// Some files may be this run's and some an earlier one's by now:
			// nothing may vouch for that.
			return fmt.Errorf("write files: %w", errors.Join(durable.Remedied(err), remove(dir, CapabilitiesFile, AttestationFile)))
		}
		delete(temps, name)
	}
	return durable.SyncFolder(dir)
}

// removeStale removes what an earlier run left and this one does not replace,
// and what a killed one left unfinished. It refuses before it removes
// anything when a name is taken by a folder.
func removeStale(dir string, known []string, files map[string][]byte) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var stale []string
	for _, e := range entries {
		name := e.Name()
		_, replaced := files[name]
		ours := slices.Contains(known, name)
		if ours && e.IsDir() {
			return fmt.Errorf("%s is a folder: move it away or choose another folder", filepath.Join(dir, name))
		}
		if ours && !replaced || strings.HasPrefix(name, temporary) {
			stale = append(stale, name)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	if err := remove(dir, stale...); err != nil {
		return err
	}
	return durable.SyncFolder(dir)
}

func remove(dir string, names ...string) error {
	var errs []error
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// writeTemporary writes data under a name of its own. The path is returned with
// an error too when there is a file to remove.
func writeTemporary(dir, name string, data []byte) (path string, err error) {
	f, err := os.CreateTemp(dir, temporary+name+"-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return f.Name(), err
	}
	if err := f.Chmod(0o644); err != nil { // CreateTemp makes 0600; readers of a report are other users
		return f.Name(), err
	}
	return f.Name(), f.Sync()
}

// WriteFile puts one file in place, whole or not at all, and readable by
// everybody. Its folder has to be there.
func WriteFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	temp, err := writeTemporary(dir, filepath.Base(path), data)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		if temp != "" {
			err = errors.Join(err, os.Remove(temp))
		}
		return fmt.Errorf("write %s: %w", path, durable.Remedied(err))
	}
	return durable.SyncFolder(dir)
}
