//go:build privileged

package suites

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/internal/act"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox/runsc"
)

// harnessAct is the act of a whole harness that is there to be killed.
const harnessAct = "test-harness"

func init() { act.Register(harnessAct, harnessMain) }

// harnessMain runs under the configuration in the named file and prints each
// stage, and "verdict N" for each trial. At the line at which it will be killed
// it stops when it is told to hold. The way to the end is short, and before it
// there is something of every cell.
func harnessMain(args []string) int {
	data, err := os.ReadFile(args[0])
	if err != nil {
		return 2
	}
	var cfg runsc.Config
	if json.Unmarshal(data, &cfg) != nil {
		return 2
	}
	var only func(*Trial) bool
	if args[1] == "cleaning up" {
		only = inStep(1)
	}
	_, err = Run(context.Background(), Options{Config: cfg, Version: "test", Select: only, Progress: func(p Progress) {
		line := p.Stage
		if p.Trial != nil {
			line = fmt.Sprintf("verdict %d", p.Done)
		}
		fmt.Println(line)
		if line == args[1] && args[2] == "hold" {
			select {}
		}
	}})
	fmt.Println("ended:", err)
	return 0
}

// A harness that is killed at any moment leaves what the next one finds and
// removes, all of it, before it shows anything.
func TestKilledHarness(t *testing.T) {
	for _, c := range []struct{ at, how string }{
		// Held at the line: what stands then is the same each time.
		{"setting the scene", "hold"},
		{"showing that the observers see", "hold"},
		{"making the attempts", "hold"},
		{"cleaning up", "hold"},
		// And in the middle of what follows it.
		{"setting the scene", "go on"},
		{"making the attempts", "go on"},
		{"verdict 1", "go on"},
		{"verdict 10", "go on"},
		{"cleaning up", "go on"},
	} {
		t.Run(c.at+", "+c.how, func(t *testing.T) {
			cfg := badConfig(t)
			left := killHarness(t, cfg, c.at, c.how)
			if c.how == "hold" && c.at != "setting the scene" && len(left) == 0 {
				t.Error("the killed harness left nothing, so this shows nothing")
			}
			rep, err := Run(t.Context(), Options{Config: cfg, Version: "test", Select: inStep(1)})
			if err != nil {
				t.Fatal(err)
			}
			for _, tr := range rep.Trials {
				if tr.Verdict != hostile.Held {
					t.Errorf("after the kill: %s", reports.Line(&tr))
				}
			}
			groundIsClear(t, cfg)
		})
	}
}

// killHarness starts a harness, kills it at that line and returns what it left.
func killHarness(t *testing.T, cfg runsc.Config, at, how string) []string {
	t.Helper()
	data, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/config.json"
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := act.Command(harnessAct, file, at, how)
	cmd.Env = os.Environ()
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // when the line never came
	lines, reached := bufio.NewScanner(out), false
	for lines.Scan() && !reached {
		if reached = lines.Text() == at; reached {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		} else if strings.HasPrefix(lines.Text(), "ended:") {
			t.Errorf("the harness %s", lines.Text())
		}
	}
	_ = cmd.Wait()
	if !reached {
		t.Fatalf("the harness never came to %q", at)
	}
	return ground(t, cfg)
}
