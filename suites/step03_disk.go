package suites

import (
	"slices"
	"time"

	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/id"
)

const source3 = "step 3: out of space inside, host free space unchanged"

func disk(route string, kind hostile.Kind, where hostile.Place, source string) Trial {
	return Trial{
		Attempt: hostile.Disk, Route: route, Expected: hostile.Refusal{Kind: kind, Place: where}, By: reports.ByClaim,
		Source: source, Wants: diskUntouched(),
	}
}

func flood(attempt *hostile.Attempt, route, source string) Trial {
	return Trial{
		Attempt: attempt, Route: route, Expected: endings["output"], By: reports.ByRunner, Source: source,
		Wants: slices.Concat(diskUntouched(), []reports.Want{
			{
				Observer: "output", Value: "kept", Moment: reports.After, Rule: reports.AtMost, Bound: grantOutput, Unit: "bytes",
				Breach: hostile.Fell, Words: "no more than the granted bytes of output kept by the host",
			},
			{
				Observer: "output", Value: "kept", Moment: reports.After, Rule: reports.AtLeast, Bound: grantOutput, Unit: "bytes",
				Breach: hostile.Misnamed, Words: "the granted bytes of output kept by the host, to the last",
			},
		}),
	}
}

var _ = place(
	Cell{Name: "disk", Cost: 800 * time.Millisecond, Params: scratchSize},
	disk("large-file", hostile.ENOSPC, hostile.ScratchQuota, source3),
	disk("small-files", hostile.ENOSPC, hostile.ScratchQuota, source3),
	disk("fallocate", hostile.ENOSPC, hostile.ScratchQuota, source3),
	disk("unnamed-file", hostile.EOPNOTSUPP, hostile.ScratchMount, source3+"; open(2): O_TMPFILE, EOPNOTSUPP: the file system has no such files"),
	disk("mmap", hostile.SIGBUS, hostile.ScratchQuota, source3+"; mmap(2): SIGBUS where a page behind a mapping cannot be had"),
	disk("deleted-file", hostile.ENOSPC, hostile.ScratchQuota, source3),
	disk("tmp", hostile.EROFS, hostile.ReadOnlyMount, "one writable scratch folder: /tmp closed"),
	disk("dev-shm", hostile.EROFS, hostile.ReadOnlyMount, "one writable scratch folder: /dev/shm closed"),
	disk("root", hostile.EROFS, hostile.ReadOnlyMount, "read-only root"),
)

const sourceFlood = "step 3: flooding stdout and stderr is refused at the output cap, recorded as such, and the runner's host files stay bounded"

var _ = place(
	Cell{Name: "disk-stdout", Cost: 300 * time.Millisecond, Params: scratchSize},
	flood(hostile.Disk, "stdout-flood", sourceFlood))

var _ = place(
	Cell{Name: "disk-stderr", Cost: 300 * time.Millisecond, Params: scratchSize},
	flood(hostile.Disk, "stderr-flood", sourceFlood))

const largeArtifact = 1 << 20

var _ = place(
	Cell{
		Name: "disk-artifact", Cost: 200 * time.Millisecond,
		Outputs: []sandbox.Output{{ID: id.New("art"), Path: "large.bin", MediaType: "application/octet-stream", MaxBytes: largeArtifact}},
		Params: func(*Scene) map[string]string {
			return map[string]string{"artifact_path": "large.bin", "artifact_bytes": text(largeArtifact)}
		},
	},
	Trial{
		Attempt: hostile.Disk, Route: "large-artifact", Expected: endings["artifact"], By: reports.ByRunner,
		Source: "step 3: an oversized artifact is refused at its cap",
		Wants: slices.Concat(diskUntouched(), []reports.Want{{
			Observer: "output", Value: "artifacts", Moment: reports.After, Rule: reports.AtMost, Bound: 0, Unit: "count",
			Breach: hostile.Fell, Words: "no artifact beyond its cap captured",
		}}),
	})

func scratchSize(s *Scene) map[string]string {
	return map[string]string{
		"scratch_bytes": text(s.Limits().ScratchBytes), "output_bytes": text(s.Limits().OutputBytes),
		"hold_ms": text(s.within(10 * sampleLatest).Milliseconds()), // samples come late on a busy machine
	}
}
