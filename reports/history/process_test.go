package history

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tenwalls.dev/harness/hostile"
)

// The test binary is another process that uses a ledger: PATH and what it does.
const asked = "TENWALLS_HISTORY_TEST"

func TestMain(m *testing.M) {
	path := os.Getenv(asked)
	if path == "" {
		os.Exit(m.Run())
	}
	if err := other(New(path), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// other begins one run and waits, or makes 50.
func other(h *History, do, name string) error {
	for n := range 50 {
		e := begun(n)
		e.Run = fmt.Sprintf("run_%s_%02d", name, n)
		if err := h.Begin(e); err != nil {
			return err
		}
		if do == "wait" {
			fmt.Println("begun")
			_, err := bufio.NewReader(os.Stdin).ReadString('\n') // until the test ends it
			return err
		}
		f := finished(n, hostile.Qualified)
		f.Run = e.Run
		if err := h.Finish(f); err != nil {
			return err
		}
	}
	return nil
}

func start(t *testing.T, h *History, do, name string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", do, name)
	cmd.Env = append(os.Environ(), asked+"="+h.Path())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	in, err := cmd.StdinPipe() // open for as long as the test wants it to wait
	must(t, err)
	t.Cleanup(func() { _ = in.Close() })
	must(t, cmd.Start())
	return cmd, bufio.NewReader(out)
}

func TestAKilledRunIsInterrupted(t *testing.T) {
	h := ledger(t)
	cmd, out := start(t, h, "wait", "a")
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	same(t, told(t, h), []string{"run_a_00 running"})
	must(t, cmd.Process.Kill())
	if err := cmd.Wait(); err == nil {
		t.Fatal("it was not killed")
	}
	same(t, told(t, h), []string{"run_a_00 interrupted"})
}

// A pid that another process has by now, or that is of another boot, is not the
// run's.
func TestAPidAloneIsNobody(t *testing.T) {
	h := ledger(t)
	by, boot, err := h.self()
	must(t, err)
	if !h.alive(by, boot) {
		t.Error("we are not alive")
	}
	if h.alive(Process{by.PID, by.Started + 1}, boot) {
		t.Error("another process of our pid is taken for it")
	}
	if h.alive(by, "00000000-0000-4000-8000-000000000000") {
		t.Error("a process of another boot is taken for it")
	}
	if h.alive(Process{}, boot) {
		t.Error("no process is alive")
	}
}

func TestStartedIsReadBehindTheName(t *testing.T) {
	h := New("unused")
	h.proc = t.TempDir()
	stat := func(state string) string {
		return "7 (a) R 1 (b)) " + state + " 1 7 7 0 -1 4194560 100 0 0 0 1 1 0 0 20 0 1 0 987654 1 1 1"
	}
	write := func(s string) {
		must(t, os.MkdirAll(filepath.Join(h.proc, "7"), 0o755))
		must(t, os.WriteFile(filepath.Join(h.proc, "7/stat"), []byte(s), 0o600))
	}
	write(stat("S"))
	if n, err := h.started(7); n != 987654 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, s := range []string{stat("Z"), "", "7 (a) S 1", "7 a S"} {
		write(s)
		if n, err := h.started(7); err == nil {
			t.Errorf("%q: %d", s, n)
		}
	}
}

func TestTwoProcessesAppend(t *testing.T) {
	h := ledger(t)
	a, _ := start(t, h, "many", "a")
	b, _ := start(t, h, "many", "b")
	must(t, a.Wait())
	must(t, b.Wait())
	entries, damage, err := h.Entries(time.Time{})
	must(t, err)
	if len(entries) != 100 || len(damage) != 0 {
		t.Errorf("%d entries, damage %q", len(entries), damage)
	}
	for _, e := range entries {
		if e.Outcome != hostile.Qualified {
			t.Errorf("%s is %s", e.Run, e.Outcome)
		}
	}
}
