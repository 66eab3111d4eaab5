package attest

import (
	"strings"
)

// maxSaid bounds what others wrote where an error repeats it, in bytes.
const maxSaid = 128

// said is what others wrote, bounded; an error quotes it (%q), which escapes
// whatever a terminal would take for more than text.
func said(s string) string {
	if len(s) <= maxSaid {
		return s
	}
	return strings.ToValidUTF8(s[:maxSaid], "") + "..."
}
