package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"tenwalls.dev/harness/reports"
)

// provedAt is when every check was last shown able to fail, by the last whole
// proof in a state folder; zero when there is none, or when that one shows it no
// more.
func provedAt(stateDir string) time.Time {
	at, err := readProved(proofFile(stateDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		slog.Warn("the proof cannot be read: " + reports.Harmless(err.Error()))
	}
	return at
}

func readProved(file string) (time.Time, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return time.Time{}, err
	}
	var p struct { // of the proof, what a metric needs
		Proof    string               `json:"proof"`
		Finished time.Time            `json:"finished"`
		Outcome  reports.ProofOutcome `json:"outcome"`
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", file, err)
	}
	if p.Proof == "" || p.Finished.IsZero() {
		return time.Time{}, fmt.Errorf("%s: it names no proof, or not when it was finished", file)
	}
	if p.Outcome != reports.Proven {
		return time.Time{}, nil
	}
	return p.Finished, nil
}
