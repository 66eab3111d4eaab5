package sandbox

import (
	"fmt"
	"time"
)

// Limits are hard ceilings. OutputBytes bounds combined stdout and stderr;
// ArtifactBytes separately bounds captured files and defaults to no capture.
type Limits struct {
	CPUMillis     int64         `json:"cpu_millis"`               // milliseconds of processor time, of the whole job
	MemoryBytes   int64         `json:"memory_bytes"`             // bytes of memory, scratch included
	Processes     int64         `json:"processes"`                // tasks: processes and their threads
	ScratchBytes  int64         `json:"scratch_bytes"`            // bytes of files under ScratchPath
	WallTime      time.Duration `json:"wall_time_ns"`             // nanoseconds from start to end
	OutputBytes   int64         `json:"output_bytes"`             // bytes of stdout and stderr together
	ArtifactBytes int64         `json:"artifact_bytes,omitempty"` // bytes of all captured outputs together; zero captures nothing
}

// DenyAllLimits returns the limits of [ProfileDenyAll]: 2 s of processor time,
// 256 MiB of memory, 32 processes, 64 MiB of scratch, 10 s of wall clock and
// 1 MiB of output. ArtifactBytes is zero: a job that declares outputs raises
// it itself, and the host's grant has to allow it.
func DenyAllLimits() Limits {
	return Limits{
		CPUMillis:    2000,
		MemoryBytes:  256 << 20,
		Processes:    32,
		ScratchBytes: 64 << 20,
		WallTime:     10 * time.Second,
		OutputBytes:  1 << 20,
	}
}

// Within reports whether every finite limit is within a host grant. A limit
// that is zero, negative or beyond 2^53-1 is not finite and never within; only
// ArtifactBytes may be zero. The grant has to be finite by the same rule.
func (l Limits) Within(maximum Limits) bool {
	return l.validate() == nil && maximum.validate() == nil && l.excess(maximum) == ""
}

// limit is one ceiling under the name that it has in JSON.
type limit struct {
	name  string
	value int64
	least int64
}

func (l Limits) each() [7]limit {
	return [...]limit{
		{"cpu_millis", l.CPUMillis, 1},
		{"memory_bytes", l.MemoryBytes, 1},
		{"processes", l.Processes, 1},
		{"scratch_bytes", l.ScratchBytes, 1},
		{"wall_time_ns", int64(l.WallTime), 1},
		{"output_bytes", l.OutputBytes, 1},
		{"artifact_bytes", l.ArtifactBytes, 0},
	}
}

// validate checks that every limit is finite.
func (l Limits) validate() error {
	for _, one := range l.each() {
		if one.value < one.least || one.value > maxInteger {
			return fmt.Errorf("%s: %d is outside %d to %d", one.name, one.value, one.least, int64(maxInteger))
		}
	}
	return nil
}

// excess says which limit is above the grant, empty when none is.
func (l Limits) excess(grant Limits) string {
	granted := grant.each()
	for i, one := range l.each() {
		if one.value > granted[i].value {
			return fmt.Sprintf("%s: %d is above the grant of %d", one.name, one.value, granted[i].value)
		}
	}
	return ""
}
