package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"tenwalls.dev/harness/internal/durable"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/evidence"
)

// Copies of the reports of the last two runs that qualified the runner stand
// beside the ledger, so that a run can be compared with the last good one also
// when that was not asked to write files: the later, and the one before it, with
// which the later itself was compared.
const (
	goodFile   = "last-good.json"
	beforeFile = "last-good-before.json"
)

// KeepGood keeps the bytes of report.json of a run that qualified the runner.
func (h *History) KeepGood(data []byte) (err error) {
	dir := filepath.Dir(h.path)
	temp, err := os.CreateTemp(dir, "."+goodFile+"-*")
	if err != nil {
		return fmt.Errorf("history: keep report: %w", durable.Remedied(err))
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("history: keep report: %w", errors.Join(durable.Remedied(err), os.Remove(temp.Name())))
		}
	}()
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	good := filepath.Join(dir, goodFile)
	if err := os.Rename(good, filepath.Join(dir, beforeFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(temp.Name(), good); err != nil {
		return err
	}
	return durable.SyncFolder(dir)
}

// Report reads the report of a run from where that run put it, or from the copy
// that was kept, if it is still that run's to the byte.
func (h *History) Report(e Entry) (*reports.Report, error) {
	if e.Digests.Report == "" {
		return nil, fmt.Errorf("%s wrote no report", e.Run)
	}
	var paths []string
	if e.Folder != "" {
		paths = append(paths, filepath.Join(e.Folder, reports.ReportFile))
	}
	for _, name := range []string{goodFile, beforeFile} {
		paths = append(paths, filepath.Join(filepath.Dir(h.path), name))
	}
	var told error
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err == nil && evidence.Digest(data) != e.Digests.Report {
			err = fmt.Errorf("%s is another run's by now", path)
		}
		if err == nil {
			return reports.Decode(data)
		}
		if told == nil { // where it should be says most
			told = err
		}
	}
	return nil, fmt.Errorf("%s: %w", e.Run, told)
}

// LastGoodReport returns the report of the last of the runs that qualified the
// runner and whose report is still there; nil when none ever did.
func (h *History) LastGoodReport(entries []Entry) (*reports.Report, error) {
	var gone []error
	for _, e := range slices.Backward(entries) {
		if !e.Good() {
			continue
		}
		r, err := h.Report(e)
		if err == nil {
			return r, nil
		}
		if len(gone) < 3 { // the latest tell enough
			gone = append(gone, err)
		}
	}
	if len(gone) == 0 {
		return nil, nil
	}
	return nil, errors.Join(append([]error{errors.New("no report of a run that qualified the runner is there any more")}, gone...)...)
}

// Drift compares a run with the last good one before it; nil when no run before
// it qualified the runner.
func (h *History) Drift(entries []Entry, r *reports.Report) (*reports.Difference, error) {
	until := slices.IndexFunc(entries, func(e Entry) bool { return e.Run == r.Run })
	if until < 0 {
		until = len(entries)
	}
	good, err := h.LastGoodReport(entries[:until])
	if err != nil || good == nil {
		return nil, err
	}
	d := reports.Diff(good, r)
	return &d, nil
}
