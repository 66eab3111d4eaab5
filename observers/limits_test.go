package observers

import "testing"

// A process can leave one hierarchy of version 1 alone.
func TestAstray(t *testing.T) {
	const at = "12:pids:/t/job\n5:memory:/t/job\n4:cpu,cpuacct:/t/job/below\n3:freezer:/elsewhere\n1:name=systemd:/init\n0::/\n"
	for groups, want := range map[string][2]string{ // by version
		at: {"", "0::/"},
		"12:pids:/\n5:memory:/t/job\n4:cpu,cpuacct:/t/job\n":   {"12:pids:/", ""},
		"12:pids:/t/job\n5:memory:/t/job2\n4:cpuacct:/t/job\n": {"5:memory:/t/job2", ""},
		"12:pids:/t/job\n5:memory:/t/job\n4:cpuacct,cpu:/\n":   {"4:cpuacct,cpu:/", ""},
		"0::/t/job\n":         {"", ""},
		"0::/t/job/a:b\n":     {"", ""},
		"0::/t\n":             {"", "0::/t"},
		"0::/t/job (deleted)": {"", "0::/t/job (deleted)"},
	} {
		for i, version := range []int{1, 2} {
			if got := astray(groups, "/t/job", version); got != want[i] {
				t.Errorf("version %d, %q: %q, want %q", version, groups, got, want[i])
			}
		}
	}
}

func TestLimitsInWords(t *testing.T) {
	l := NewLimits(Host{}, "")
	for want, read := range map[string]map[string]int64{
		"memory 12 MiB, swap 0, tasks 7":                                {"memory": 12 << 20, "swap": 0, "tasks": 7},
		"memory without limit, swap without limit, tasks without limit": {"memory": NoLimit, "swap": NoLimit, "tasks": NoLimit},
		"memory 4097 bytes, swap 1 MiB, tasks 1048576":                  {"memory": 4097, "swap": 1 << 20, "tasks": 1 << 20},
	} {
		if got := l.words(read); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
