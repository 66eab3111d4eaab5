package runsc

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes, written in the configuration as a whole number
// with a unit: B, KiB, MiB, GiB or TiB.
type Size int64

var sizeUnits = []struct {
	name string
	size int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// UnmarshalText reads "256MiB".
func (s *Size) UnmarshalText(text []byte) error {
	word := strings.TrimSpace(string(text))
	if word == "0" {
		*s = 0
		return nil
	}
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(word, u.name)
		if !ok {
			continue
		}
		// Unsigned, so that a sign is refused: a size is digits and a unit.
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 63)
		if err != nil || n > (1<<53)/uint64(u.size) {
			break
		}
		*s = Size(int64(n) * u.size)
		return nil
	}
	return fmt.Errorf("%q is not a size: write a whole number with B, KiB, MiB, GiB or TiB, for example 256MiB", word)
}

// MarshalText writes the largest unit that divides the size.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && int64(s)%u.size == 0 {
			return fmt.Sprintf("%d%s", int64(s)/u.size, u.name)
		}
	}
	return "0B"
}

// Duration is a time span, written as 10s or 1m30s.
type Duration time.Duration

// UnmarshalText reads "10s".
func (d *Duration) UnmarshalText(text []byte) error {
	word := strings.TrimSpace(string(text))
	v, err := time.ParseDuration(word)
	if err != nil || v < 0 || strings.ContainsAny(word, "+-") {
		return fmt.Errorf("%q is not a time span: write for example 10s", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes it as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }
