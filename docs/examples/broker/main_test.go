package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports/attest"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/admission"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/id"
	"tenwalls.dev/harness/sandbox/runsc"
)

// TestBroker builds the example and asks it, first under an attestation of this
// host, then after each thing that takes the permission away.
func TestBroker(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	broker := in("broker")
	if out, err := exec.Command("go", "build", "-o", broker, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	write(t, in("runsc"), []byte("runsc"))
	write(t, in("runner.yaml"), []byte("runtime:\n  path: "+in("runsc")+"\n"))
	write(t, in("job.json"), sealed(t))
	if _, err := attest.GenerateKey(in("harness.key"), in("harness.pub")); err != nil {
		t.Fatal(err)
	}
	ask := func(wantCode int, wantWords string) {
		t.Helper()
		cmd := exec.Command(broker, "--attestation", in("attestation.json"), "--key", in("harness.pub"), "--runner", in("runner.yaml"), in("job.json"))
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != wantCode || !strings.Contains(string(out), wantWords) {
			t.Errorf("exit code %d, %q; want %d, %q", got, out, wantCode, wantWords)
		}
	}
	ask(1, "(withdrawn)")
	publish(t, in, time.Minute)
	ask(0, "admitted")
	write(t, in("runsc"), []byte("another"))
	ask(1, "(runtime)")
	write(t, in("runsc"), []byte("runsc"))
	ask(0, "admitted")
	write(t, in("runner.yaml"), []byte("runtime:\n  path: "+in("runsc")+"\n  platform: ptrace\n"))
	ask(1, "(configuration)")
	write(t, in("runner.yaml"), []byte("runtime:\n  path: 1\n"))
	ask(2, "runtime.path")
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func sealed(t *testing.T) []byte {
	t.Helper()
	job, err := sandbox.Seal(sandbox.Job{
		SchemaVersion: sandbox.SchemaVersion, ID: id.New(sandbox.PrefixJob), Key: "k", Scope: sandbox.Scope{Tenant: "t", Project: "p"}, Principal: "somebody",
		Image: evidence.Digest([]byte("image")), Argv: []string{"/bin/true"}, Network: sandbox.NetworkDenied, Limits: sandbox.DenyAllLimits(),
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// publish stands in for harness watch.
func publish(t *testing.T, in func(string) string, life time.Duration) {
	t.Helper()
	key, err := attest.LoadPrivateKey(in("harness.key"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := runsc.LoadConfig(in("runner.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := cfg.Digest()
	if err != nil {
		t.Fatal(err)
	}
	host, err := admission.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	runtime := evidence.Digest([]byte("runsc"))
	s := attest.Statement{
		Run: "run_1", Outcome: hostile.Qualified, Issued: time.Now(), Expires: time.Now().Add(life),
		Host:          attest.StatementHost{BootID: host.BootID, Kernel: host.Kernel},
		RuntimeDigest: runtime, ConfigDigest: config, ReportDigest: runtime, JUnitDigest: runtime,
	}
	s.Capabilities = []byte(fmt.Sprintf(`{"schema_version":1,"runtime":"runsc","runtime_digest":%q,"profile":%q,"qualification":"run_1","qualified_until":%q,"limits":%s}`,
		runtime, sandbox.ProfileDenyAll, s.Expires.UTC().Truncate(time.Second).Format(time.RFC3339), limits(t)))
	a, err := attest.Sign(s, key)
	if err != nil {
		t.Fatal(err)
	}
	data, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	write(t, in("attestation.json"), data)
}

func limits(t *testing.T) []byte {
	t.Helper()
	data, err := json.Marshal(sandbox.DenyAllLimits())
	if err != nil {
		t.Fatal(err)
	}
	return data
}
