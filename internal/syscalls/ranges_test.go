package syscalls

import (
	"slices"
	"testing"
)

func TestRanges(t *testing.T) {
	for in, want := range map[string][]int{
		"none": nil, "0": {0}, "0-1,3": {0, 1, 3}, "7-7": {7}, "4096": {4096}, "4095-4096": {4095, 4096},
	} {
		if got, err := Ranges(in); err != nil || !slices.Equal(got, want) {
			t.Errorf("Ranges(%q) = %v, %v", in, got, err)
		}
	}
	for _, in := range []string{
		"", ",", "1,", "x", "1-", "-1", "-", "3-1", "1-2-3", "4097", "0-4097", "99999999999999999999", "0-4096,0-4096,0-4096", "0x1", " 1", "None",
	} {
		if got, err := Ranges(in); err == nil {
			t.Errorf("Ranges(%q) = %d numbers", in, len(got))
		}
	}
}
