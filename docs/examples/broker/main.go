// Command broker shows how a job broker asks, before it hands a job to this
// host, whether the job may run here, now:
//
//	broker --attestation /run/tenwalls/attestation.json --key harness.pub \
//	       --runner runner.yaml job.json
//
// job.json is a sandbox.Job as sandbox.Seal returns it, encoded by encoding/json: what
// the broker would submit. It prints the answer and ends with 0 for yes, 1 for no, 2 for a wrong call. A
// real broker keeps the gate, asks it at every job, and gives gate.Capabilities
// to its runner as runsc.Options.Vouch, so that it is asked once more when the
// job starts.
package main

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"

	"tenwalls.dev/harness/reports/attest"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/admission"
	"tenwalls.dev/harness/sandbox/runsc"
)

func main() {
	file := flag.String("attestation", "/run/tenwalls/attestation.json", "what harness watch publishes")
	key := flag.String("key", "", "the trusted public key, PEM; from another place than the attestation")
	runner := flag.String("runner", "", "the runner configuration that jobs are run under")
	flag.Parse()
	err := ask(*file, *key, *runner, flag.Arg(0))
	var refusal *admission.Refusal
	switch {
	case err == nil:
		fmt.Println("admitted")
	case errors.As(err, &refusal):
		fmt.Println(err)
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "broker:", err)
		os.Exit(2)
	}
}

func ask(file, keyFile, runner, jobFile string) error {
	gate, err := open(file, keyFile, runner)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(jobFile)
	if err != nil {
		return fmt.Errorf("job: %w", err)
	}
	var job sandbox.Job
	if err := json.Unmarshal(data, &job); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	return gate.Ask(job)
}

// open makes the gate that a broker keeps.
func open(file, keyFile, runner string) (*admission.Gate, error) {
	key, err := attest.LoadPublicKey(keyFile)
	if err != nil {
		return nil, err
	}
	cfg, err := runsc.LoadConfig(runner)
	if err != nil {
		return nil, err
	}
	return admission.New(admission.Options{
		File: file, Keys: []ed25519.PublicKey{key}, Runsc: cfg.Runtime.Path,
		// Read anew at each question: the runner reads it anew too.
		Config: func() (string, error) {
			now, err := runsc.LoadConfig(runner)
			if err != nil {
				return "", err
			}
			return now.Digest()
		},
	})
}
