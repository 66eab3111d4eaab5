//go:build privileged

package runsc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/id"
)

// TestMain makes the test binary the jobs' program as well: the image holds a
// copy of it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "guest" {
		guest(os.Args[2:])
		os.Exit(0)
	}
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "the privileged tests need root")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func guest(args []string) {
	switch args[0] {
	case "say":
		fmt.Println(args[1])
		fmt.Fprintln(os.Stderr, "on the other stream")
	case "exit":
		n, _ := strconv.Atoi(args[1])
		os.Exit(n)
	case "spin":
		for n := 0; ; n++ {
			runtime.KeepAlive(n)
		}
	case "sleep":
		if len(args) > 1 { // says in scratch that it runs
			if err := os.WriteFile(args[1], nil, 0o600); err != nil {
				os.Exit(4)
			}
		}
		time.Sleep(time.Hour)
	case "flood":
		b := bytes.Repeat([]byte("flood "), 4096)
		for {
			os.Stdout.Write(b)
			os.Stderr.Write(b)
		}
	case "eat":
		for {
			b, err := syscall.Mmap(-1, 0, 8<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			if err != nil {
				fmt.Println(err)
				os.Exit(3)
			}
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
		}
	case "write":
		for i := 1; i+1 < len(args); i += 2 {
			if err := os.WriteFile(args[i], []byte(args[i+1]), 0o600); err != nil {
				fmt.Println(err)
				os.Exit(4)
			}
		}
	case "link":
		if err := os.Symlink(args[1], args[2]); err != nil {
			fmt.Println(err)
			os.Exit(4)
		}
	case "cat":
		b, err := os.ReadFile(args[1])
		os.Stdout.Write(b)
		if err != nil {
			fmt.Println(err)
		}
	}
}

// shelf is an artifact store in memory.
type shelf struct {
	mu    sync.Mutex
	bytes map[id.ID][]byte
}

func (s *shelf) Open(_ context.Context, ref evidence.Ref) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return io.NopCloser(bytes.NewReader(s.bytes[ref.ID])), nil
}

func (s *shelf) Put(_ context.Context, ref evidence.Ref, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes[ref.ID] = data
	return nil
}

const testImage = "sha256:0000000000000000000000000000000000000000000000000000000000000001"

// bench is a runner over the real runsc in a state folder of its own.
type bench struct {
	*Runner
	cfg   Config
	opt   Options
	shelf *shelf
}

func runscPath(t testing.TB) string {
	t.Helper()
	p := os.Getenv("TENWALLS_RUNSC")
	if p == "" {
		p = "../../bin/runsc"
	}
	p, err := filepath.Abs(p)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newBench(t testing.TB, change func(*Config)) *bench {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Runtime.Path = runscPath(t)
	cfg.StateDir = filepath.Join(t.TempDir(), "state")
	cfg.ImageStore = filepath.Join(t.TempDir(), "images")
	cfg.CgroupParent = "/tenwalls-test/" + strconv.Itoa(os.Getpid())
	if change != nil {
		change(&cfg)
	}
	who, err := Identify(t.Context(), cfg.Runtime.Path)
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(cfg.ImageStore, "sha256-"+testImage[7:])
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "bin/guest"), self, 0o755); err != nil {
		t.Fatal(err)
	}
	b := &bench{cfg: cfg, shelf: &shelf{bytes: map[id.ID][]byte{}}}
	b.opt = Options{
		Broker: "test", Key: testKey(0), Artifacts: b.shelf,
		Vouch: func() (sandbox.Capabilities, error) {
			return sandbox.Capabilities{
				SchemaVersion: 1, Runtime: sandbox.RuntimeRunsc, RuntimeDigest: who.Digest, Profile: sandbox.ProfileDenyAll,
				Qualification: "provisional:test", QualifiedUntil: time.Now().Add(time.Minute), Limits: cfg.Limits.Limits(),
			}, nil
		},
	}
	b.reopen(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := b.Runner.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		removeParent(t, b)
	})
	return b
}

func removeParent(t testing.TB, b *bench) {
	g, err := b.cgroups.Open("/tenwalls-test")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.RemoveIfEmpty(); err != nil {
		t.Error(err)
	}
}

func (b *bench) reopen(t testing.TB) {
	t.Helper()
	r, err := Open(b.cfg, b.opt)
	if err != nil {
		t.Fatal(err)
	}
	b.Runner = r
}

func (b *bench) job(t testing.TB, change func(*sandbox.Job), argv ...string) sandbox.Job {
	t.Helper()
	j := sandbox.Job{
		SchemaVersion: 1, ID: id.New(sandbox.PrefixJob), Scope: sandbox.Scope{Tenant: "test", Project: "runner"}, Principal: "tester",
		Image: testImage, Argv: append([]string{"/bin/guest", "guest"}, argv...), Network: sandbox.NetworkDenied, Limits: b.cfg.Limits.Limits(),
	}
	j.Key = string(j.ID)
	if change != nil {
		change(&j)
	}
	j, err := sandbox.Seal(j)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// do runs one job to its end and checks that nothing of it is left.
func (b *bench) do(t testing.TB, p Probe, job sandbox.Job) sandbox.Result {
	t.Helper()
	if _, err := b.SubmitProbe(t.Context(), job, p); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Wait(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	res, err := b.Collect(t.Context(), job.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.nothingLeft(t, job)
	return res
}

func (b *bench) nothingLeft(t testing.TB, job sandbox.Job) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(b.cfg.StateDir, "jobs", string(job.ID))); !os.IsNotExist(err) {
		t.Errorf("the job's folder is left (%v)", err)
	}
	if left, err := cgroupsAt("/sys/fs/cgroup", b.cfg.CgroupParent+"/"+string(job.ID)); err != nil || len(left) > 0 {
		t.Errorf("cgroups are left: %v %v", left, err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || bytes.Contains(mounts, []byte(job.ID)) {
		t.Errorf("mounts are left (%v)", err)
	}
}
