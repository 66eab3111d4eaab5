package syscalls

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxNumber bounds the numbers that [Ranges] takes, and with them what a hostile
// claim can make the harness expand.
const MaxNumber = 4096

// Ranges reads numbers as a census writes them: "0-1,3"; "none" is empty.
func Ranges(s string) ([]int, error) {
	if s == "none" {
		return nil, nil
	}
	var out []int
	for _, r := range strings.Split(s, ",") {
		low, high, ok := strings.Cut(r, "-")
		if !ok {
			high = low
		}
		a, err := strconv.Atoi(low)
		if err != nil {
			return nil, err
		}
		b, err := strconv.Atoi(high)
		if err != nil {
			return nil, err
		}
		if a < 0 || b > MaxNumber || a > b || len(out) > MaxNumber {
			return nil, fmt.Errorf("range %q", r)
		}
		for n := a; n <= b; n++ {
			out = append(out, n)
		}
	}
	return out, nil
}
