package watch

import (
	"strings"

	"tenwalls.dev/harness/reports"
)

// maxBrief bounds what others said where it is told in a line, in bytes.
const maxBrief = 512

// brief is somebody else's words in one bounded line that a terminal can show.
func brief(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > maxBrief {
		s = strings.ToValidUTF8(s[:maxBrief], "") + "..."
	}
	return reports.Harmless(strings.Join(strings.Fields(s), " "))
}
