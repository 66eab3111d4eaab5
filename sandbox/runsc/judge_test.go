package runsc

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"tenwalls.dev/harness/sandbox"
)

// A job that could not be ended has not exited, whatever its command said and
// whatever cap wanted its end: the runner failed, and the detail says all of it.
func TestJudgeOfWhatCouldNotBeEnded(t *testing.T) {
	killed := errors.New("end the job's processes: still there: [7]")
	for _, c := range []struct {
		name string
		cap  Reason
		ran  bool // the command ended with success
		want string
	}{
		{"exited with success", "", true, "instead of exited; end the job's"},
		{"never ended", "", false, "instead of exited; end the job's"},
		{"over a cap", ReasonCPU, false, "instead of cpu; end the job's"},
		{"over a cap, and exited", ReasonWall, true, "instead of wall; end the job's"},
	} {
		x := &execution{cmd: exec.Command("true"), end: newEnding()}
		if c.ran {
			if err := x.cmd.Run(); err != nil {
				t.Fatal(err)
			}
		}
		if c.cap != "" {
			x.end.because(c.cap)
		}
		v := x.judge(killed)
		if v.reason != ReasonTeardown || v.reason.State() != sandbox.StateFailed || v.exit == 0 || v.clean ||
			!strings.Contains(v.detail, c.want) || !strings.Contains(v.detail, "still there: [7]") {
			t.Errorf("%s: %+v", c.name, v)
		}
		// And then it could not be removed: said as well, and once.
		v.fail(errors.New("tear down: busy"))
		if v.reason != ReasonTeardown || strings.Count(v.detail, "instead of") != 1 || !strings.HasSuffix(v.detail, "; tear down: busy") {
			t.Errorf("%s, not removed: %+v", c.name, v)
		}
	}
}

func TestVerdictOfWhatCouldNotBeRemoved(t *testing.T) {
	v := verdict{reason: ReasonStart, detail: "no such file"}
	v.fail(errors.New("tear down: busy"))
	if v.reason != ReasonTeardown || v.detail != "instead of start; no such file; tear down: busy" {
		t.Errorf("%+v", v)
	}
}
