package sandbox

import (
	"math"
	"reflect"
	"testing"
	"time"
)

func TestDenyAllLimits(t *testing.T) {
	want := Limits{
		CPUMillis:    2000,
		MemoryBytes:  268435456,
		Processes:    32,
		ScratchBytes: 67108864,
		WallTime:     10 * time.Second,
		OutputBytes:  1048576,
	}
	if got := DenyAllLimits(); got != want {
		t.Errorf("DenyAllLimits() = %+v", got)
	}
	if !want.Within(want) {
		t.Error("the deny-all limits are not within themselves")
	}
}

// TestWithinEveryLimit walks the struct by reflection, so that a limit added
// later is covered.
func TestWithinEveryLimit(t *testing.T) {
	grant := DenyAllLimits()
	grant.ArtifactBytes = 100
	for i := range reflect.TypeFor[Limits]().NumField() {
		name := reflect.TypeFor[Limits]().Field(i).Name
		granted := reflect.ValueOf(grant).Field(i).Int()
		zeroIsFine := name == "ArtifactBytes"
		for _, c := range []struct {
			what  string
			value int64
			ok    bool
		}{
			{"the grant", granted, true},
			{"one below", granted - 1, true},
			{"least", 1, true},
			{"one above", granted + 1, false},
			{"zero", 0, zeroIsFine},
			{"negative", -1, false},
			{"most negative", math.MinInt64, false},
			{"most positive", math.MaxInt64, false},
		} {
			l := grant
			reflect.ValueOf(&l).Elem().Field(i).SetInt(c.value)
			if got := l.Within(grant); got != c.ok {
				t.Errorf("%s at %s (%d): Within() = %v, want %v", name, c.what, c.value, got, c.ok)
			}
		}
		for _, unbounded := range []int64{math.MaxInt64, -1} {
			wide := grant
			reflect.ValueOf(&wide).Elem().Field(i).SetInt(unbounded)
			if grant.Within(wide) {
				t.Errorf("%s: within a grant of %d, which is not finite", name, unbounded)
			}
			if wide.Within(wide) {
				t.Errorf("%s: %d is within itself", name, unbounded)
			}
		}
	}
}

func TestWithinZeroGrant(t *testing.T) {
	if DenyAllLimits().Within(Limits{}) || (Limits{}).Within(Limits{}) || (Limits{}).Within(DenyAllLimits()) {
		t.Error("the zero Limits grant or ask something")
	}
}

func TestLargestFiniteLimit(t *testing.T) {
	l := DenyAllLimits()
	l.MemoryBytes = 1<<53 - 1
	if !l.Within(l) {
		t.Error("2^53-1 is exact in JSON and refused")
	}
}
