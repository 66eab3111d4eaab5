package main

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	usualWidth = 80 // of a terminal that does not tell its own
	leastWidth = 40 // below it a text is not readable and the terminal breaks it
)

// Return to the first column and erase to the end (ECMA-48, 8.3.41).
const erase = "\r\x1b[K"

// terminal tells whether w is one, which, and how wide.
func terminal(w io.Writer) (f *os.File, width int, ok bool) {
	f, ok = w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 0 // unknown: the usual one
	}
	return f, width, true
}

// fresh is what goes before a message that may come while a line of the terminal
// is being redrawn and the terminal has echoed "^C" behind it. A log needs nothing.
func fresh(w io.Writer) string {
	_, _, ok := terminal(w)
	switch {
	case !ok:
		return ""
	case os.Getenv("TERM") == "dumb":
		return "\n"
	default:
		return erase
	}
}

// tell writes a result. On a terminal no line is longer than it is wide; a file
// or a pipe gets each line whole, so that it can be searched.
func tell(w io.Writer, text string) error {
	if _, width, ok := terminal(w); ok {
		text = wrapped(text, width)
	}
	return printed(io.WriteString(w, text))
}

// wrapped breaks long lines at spaces, and goes on below the line's last column
// of text. It counts a rune as one column. A word that fits in no line, such as
// a path, is broken where the line ends.
func wrapped(text string, width int) string {
	if width <= 0 {
		width = usualWidth
	}
	width = max(width, leastWidth)
	var b strings.Builder
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) <= width {
			b.WriteString(line)
			continue
		}
		at := hang(line, width/2)
		b.WriteString(line[:at])
		indent := max(at, 2)
		room := width - at
		for i, word := range strings.Fields(line[at:]) {
			runes := []rune(word)
			if i > 0 {
				if room > len(runes) || room > 1 && len(runes) > width-indent {
					b.WriteByte(' ')
					room--
				} else {
					room = 0
				}
			}
			for len(runes) > 0 {
				if room == 0 {
					b.WriteString("\n" + strings.Repeat(" ", indent))
					room = width - indent
				}
				n := min(room, len(runes))
				b.WriteString(string(runes[:n]))
				runes, room = runes[n:], room-n
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// hang is where the last column of text begins, among the first columns of the
// line: behind two spaces or more. It is 0 when the line has one column only.
func hang(line string, within int) int {
	at := 0
	for i := 2; i <= min(within, len(line)-1); i++ {
		if line[i] >= utf8.RuneSelf { // from here on a byte is no column
			break
		}
		if line[i] != ' ' && line[i-1] == ' ' && line[i-2] == ' ' {
			at = i
		}
	}
	return at
}
