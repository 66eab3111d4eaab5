package observers

import "testing"

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
