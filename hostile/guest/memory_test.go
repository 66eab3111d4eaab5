package main

import (
	"os"
	"testing"

	"tenwalls.dev/harness/hostile"
)

// TestDevouringStopsOneStepBeyondTheGrant devours without a wall, but little.
// What a route takes stays taken until the process ends, which in a sandbox is
// at once.
func TestDevouringStopsOneStepBeyondTheGrant(t *testing.T) {
	for _, route := range []string{"anonymous", "memfd", "page-cache", "pipes", "runtime-heap"} {
		t.Run(route, func(t *testing.T) {
			claims := claimsOf(t, hostile.Order{Nonce: "n", Routes: []string{"memory/" + route}, Params: map[string]string{
				"scratch": t.TempDir(), "memory_bytes": "1048576",
			}})
			if len(claims) != 3 || claims[1].Event != hostile.Progress || claims[2].Event != hostile.Happened {
				t.Fatalf("claims %+v", claims)
			}
			if n := claims[2].Count; n < memoryStep || n > 2*memoryStep || claims[1].Count != n {
				t.Errorf("%d bytes, after %d", n, claims[1].Count)
			}
		})
	}
}

func TestTouchReachesEveryPage(t *testing.T) {
	b := make([]byte, 3*os.Getpagesize()+1)
	touch(b)
	for i := 0; i < len(b); i += os.Getpagesize() {
		if b[i] != 1 {
			t.Errorf("byte %d is untouched", i)
		}
	}
}
