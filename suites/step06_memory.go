package suites

import (
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
)

func allocate(route string) *Cell {
	return place(
		Cell{Name: "memory-" + route, Cost: 600 * time.Millisecond, Params: memoryCap},
		Trial{
			Attempt: hostile.Memory, Route: route, Expected: endings["memory"], By: reports.ByRunner,
			Source: "step 6: refused inside at 256 MB, nothing outside killed or swapped: the assertion is about the host",
			Wants:  nothingDisturbed(),
		})
}

var (
	_ = allocate("anonymous")
	_ = allocate("memfd")
	_ = allocate("page-cache")
	_ = allocate("stacks")
	_ = allocate("pipes")
	_ = allocate("runtime-heap")
)

func memoryCap(s *Scene) map[string]string {
	return map[string]string{"memory_bytes": text(s.Limits().MemoryBytes), "scratch_bytes": text(s.Limits().ScratchBytes)}
}
